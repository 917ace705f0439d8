"""Time expressions: what they resolve to, and what is no date at all."""

from __future__ import annotations

import gzip
import json
import os
import re
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.analysis.facts import TimeExpression
from ebbtide.analysis.temporal import describe, format_day, parse_timestamp, resolve_times
from ebbtide.errors import InputError

WEDNESDAY = datetime(2023, 5, 10, 13, 56)
DATA = Path(os.environ.get("EBBTIDE_DATA", Path(__file__).parents[2].parent / "shared" / "data"))


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _spans(
    text: str, anchor: datetime | None = WEDNESDAY
) -> list[tuple[str, str | None, str | None]]:
    return [(found.text, found.first, found.last) for found in resolve_times(text, anchor)]


# text, the expression, first, last (empty: the same day), grain
RELATIVE = [
    ("I went there yesterday.", "yesterday", "2023-05-09", "", "day"),
    ("I'll go tomorrow morning", "tomorrow morning", "2023-05-11", "", "day"),
    ("Today was good", "Today", "2023-05-10", "", "day"),
    ("see you tonight", "tonight", "2023-05-10", "", "day"),
    ("I ran this morning", "this morning", "2023-05-10", "", "day"),
    ("We had dinner last night!", "last night", "2023-05-09", "", "day"),
    ("it was the day before yesterday", "the day before yesterday", "2023-05-08", "", "day"),
    ("the day after tomorrow I fly", "the day after tomorrow", "2023-05-12", "", "day"),
    ("Last week I won", "Last week", "2023-05-01", "2023-05-07", "week"),
    ("this week I applied", "this week", "2023-05-08", "2023-05-14", "week"),
    ("next week we move", "next week", "2023-05-15", "2023-05-21", "week"),
    ("the week before last", "the week before last", "2023-04-24", "2023-04-30", "week"),
    ("last weekend we biked", "last weekend", "2023-05-06", "2023-05-07", "weekend"),
    ("this weekend I'm hiking", "this weekend", "2023-05-13", "2023-05-14", "weekend"),
    ("next weekend", "next weekend", "2023-05-20", "2023-05-21", "weekend"),
    ("this past weekend was insane", "this past weekend", "2023-05-06", "2023-05-07", "weekend"),
    ("we went two weekends ago", "two weekends ago", "2023-04-29", "2023-04-30", "weekend"),
    (
        "what did you do over the weekend?",
        "over the weekend",
        "2023-05-06",
        "2023-05-07",
        "weekend",
    ),
    ("last month I got hurt", "last month", "2023-04-01", "2023-04-30", "month"),
    ("this month", "this month", "2023-05-01", "2023-05-31", "month"),
    ("camping next month", "next month", "2023-06-01", "2023-06-30", "month"),
    ("I read it last year", "last year", "2022-01-01", "2022-12-31", "year"),
    ("next year I retire", "next year", "2024-01-01", "2024-12-31", "year"),
    ("last Friday I went", "last Friday", "2023-05-05", "", "day"),
    ("I joined last Tues.", "last Tues.", "2023-05-09", "", "day"),
    ("I joined last Tues. and left", "last Tues.", "2023-05-09", "", "day"),
    ("On Mon. I went home", "Mon", "2023-05-08", "", "day"),
    ("We met on Friday. It was fun.", "Friday", "2023-05-05", "", "day"),
    ("We met on Friday\nIt was fun.", "Friday", "2023-05-05", "", "day"),
    ("See you on Monday. Bye!", "Monday", "2023-05-15", "", "day"),
    ("Do it by Friday. Thanks!", "by Friday", "2023-05-10", "2023-05-12", "span"),
    ("I saw her last Friday.", "last Friday", "2023-05-05", "", "day"),
    ("On Friday Ben came.", "Friday", "2023-05-05", "", "day"),
    ("I slept, and on Friday Ben came.", "Friday", "2023-05-05", "", "day"),
    ("Last Saturday Grandma visited.", "Last Saturday", "2023-05-06", "", "day"),
    ("We left on Friday. 8 May was fun.", "8 May", "2023-05-08", "", "day"),
    ("this Friday", "this Friday", "2023-05-12", "", "day"),
    ("next Friday", "next Friday", "2023-05-19", "", "day"),
    ("last Wednesday", "last Wednesday", "2023-05-03", "", "day"),
    ("the Friday before last", "the Friday before last", "2023-04-28", "", "day"),
    ("I saw her on Tuesday", "Tuesday", "2023-05-09", "", "day"),
    ("What did I do on Sunday?", "Sunday", "2023-05-07", "", "day"),
    ("We'll meet on Tuesday", "Tuesday", "2023-05-16", "", "day"),
    ("see you Friday!", "Friday", "2023-05-12", "", "day"),
    # A plan told in the present tense; without a verb, or with one of the past, it is over.
    ("My exam is on Monday.", "Monday", "2023-05-15", "", "day"),
    ("The meeting's on Tuesday at 3", "Tuesday", "2023-05-16", "", "day"),
    ("I have a dentist appointment on Friday.", "Friday", "2023-05-12", "", "day"),
    ("I've got an exam on Friday.", "Friday", "2023-05-12", "", "day"),
    ("My dentist appointment is soon. Remind me on Friday", "Friday", "2023-05-12", "", "day"),
    ("Call me on Friday.", "Friday", "2023-05-12", "", "day"),
    ("I booked a table for Saturday.", "Saturday", "2023-05-13", "", "day"),
    ("Can we meet on Thursday?", "Thursday", "2023-05-11", "", "day"),
    ("I need to go there on Thursday", "Thursday", "2023-05-11", "", "day"),
    ("My flight leaves on Sunday.", "Sunday", "2023-05-14", "", "day"),
    ("The gym is closed on Sunday.", "Sunday", "2023-05-14", "", "day"),
    ("What do I have on Friday?", "Friday", "2023-05-12", "", "day"),
    ("Am I free on Friday?", "Friday", "2023-05-12", "", "day"),
    ("What's on Friday?", "Friday", "2023-05-12", "", "day"),
    ("How about Friday?", "Friday", "2023-05-12", "", "day"),
    ("Great hike on Saturday!", "Saturday", "2023-05-06", "", "day"),
    ("We raked leaves on Saturday", "Saturday", "2023-05-06", "", "day"),
    ("I have a photo that I took on Friday", "Friday", "2023-05-05", "", "day"),
    ("I can't believe the score on Saturday!", "Saturday", "2023-05-06", "", "day"),
    ("Remind me of our chat on Monday.", "Monday", "2023-05-08", "", "day"),
    ("Thanks for Saturday!", "Saturday", "2023-05-06", "", "day"),
    ("She is on leave since Monday", "since Monday", "2023-05-08", "2023-05-10", "span"),
    ("it happened Tuesday last week", "Tuesday last week", "2023-05-02", "", "day"),
    ("on Monday of next week", "Monday of next week", "2023-05-15", "", "day"),
    ("next week on Thursday", "next week on Thursday", "2023-05-18", "", "day"),
    ("ten days ago", "ten days ago", "2023-04-30", "", "day"),
    ("two weeks ago we met", "two weeks ago", "2023-04-24", "2023-04-30", "week"),
    ("a couple of weeks ago", "a couple of weeks ago", "2023-04-24", "2023-04-30", "week"),
    ("two months ago", "two months ago", "2023-03-01", "2023-03-31", "month"),
    ("about 3 years ago", "about 3 years ago", "2020-01-01", "2020-12-31", "year"),
    ("twenty-five years ago", "twenty-five years ago", "1998-01-01", "1998-12-31", "year"),
    ("a year ago today", "a year ago today", "2022-05-10", "", "day"),
    ("half a year ago", "half a year ago", "2022-11-01", "2022-11-30", "month"),
    ("a year and a half ago", "a year and a half ago", "2021-11-01", "2021-11-30", "month"),
    ("a few years back", "a few years back", "2018-01-01", "2021-12-31", "span"),
    ("several years ago", "several years ago", "2016-01-01", "2020-12-31", "span"),
    ("2-3 weeks ago", "2-3 weeks ago", "2023-04-17", "2023-04-30", "span"),
    ("a decade ago", "a decade ago", "2013-01-01", "2013-12-31", "year"),
    ("we leave in two weeks", "in two weeks", "2023-05-22", "2023-05-28", "week"),
    ("in 3 days we will know", "in 3 days", "2023-05-13", "", "day"),
    ("two months from now", "two months from now", "2023-07-01", "2023-07-31", "month"),
    # What was given another day, or agreed to happen on one, is still to come
    ("My exam was moved to Friday.", "Friday", "2023-05-12", "", "day"),
    ("They pushed our call back to Friday.", "Friday", "2023-05-12", "", "day"),
    ("The deadline got extended to June 3.", "June 3", "2023-06-03", "", "day"),
    ("They said Friday.", "Friday", "2023-05-12", "", "day"),
    ("They said on Friday that it is late.", "Friday", "2023-05-05", "", "day"),
    ("We agreed to meet on Friday.", "Friday", "2023-05-12", "", "day"),
    ("She told me to come Friday.", "Friday", "2023-05-12", "", "day"),
    ("She told me on Friday to come.", "Friday", "2023-05-05", "", "day"),
    ("I agreed to sell, and on Friday we signed.", "Friday", "2023-05-05", "", "day"),
    ("We moved to Porto on Friday.", "Friday", "2023-05-05", "", "day"),
    ("The party is Saturday and I haven't got a gift.", "Saturday", "2023-05-13", "", "day"),
    ("It is sunny Monday.", "Monday", "2023-05-08", "", "day"),
    ("Isn't it Friday?", "Friday", "2023-05-12", "", "day"),
    ("The office will be closed on Friday.", "Friday", "2023-05-12", "", "day"),
    ("It'll be delivered on Friday.", "Friday", "2023-05-12", "", "day"),
    ("They have to be paid by June 3.", "by June 3", "2023-05-10", "2023-06-03", "span"),
    ("We are getting married in March.", "March", "2024-03-01", "2024-03-31", "month"),
    ("We got married in March.", "March", "2023-03-01", "2023-03-31", "month"),
    ("We don't meet on Friday.", "Friday", "2023-05-12", "", "day"),
    ("If it rains on Sunday we stay home.", "Sunday", "2023-05-14", "", "day"),
    ("If it rained on Sunday we stayed home.", "Sunday", "2023-05-07", "", "day"),
    ("I hope it's dry on Sunday.", "Sunday", "2023-05-14", "", "day"),
    ("Good luck on Friday!", "Friday", "2023-05-12", "", "day"),
    ("No, Friday is the retro.", "Friday", "2023-05-12", "", "day"),
    ("The room is taken on Monday, I got another.", "Monday", "2023-05-15", "", "day"),
    ("The photos are from Saturday.", "Saturday", "2023-05-06", "", "day"),
    # When it was arranged is not said; a weekday says of which year its day is
    ("Added to your calendar: May 12, 3pm.", "May 12", "2023-05-12", "", "day"),
    ("Ok, we booked Kyoto: June 10 to 13.", "June 10 to 13", "2023-06-10", "2023-06-13", "span"),
    ("Reminder set for Friday.", "Friday", "2023-05-12", "", "day"),
    ("We booked it on June 10.", "June 10", "2022-06-10", "", "day"),
    ("I noted that on Friday.", "Friday", "2023-05-05", "", "day"),
    ("We met on Sunday 14 May.", "Sunday 14 May", "2023-05-14", "", "day"),
    ("We met on Saturday, May 14.", "Saturday, May 14", "2022-05-14", "", "day"),
    ("It ended Tuesday, 30 May.", "Tuesday, 30 May", "2023-05-30", "", "day"),
    ("The plumber comes Friday.", "Friday", "2023-05-12", "", "day"),
    ("Make it Friday.", "Friday", "2023-05-12", "", "day"),
    ("Dinner Friday at 7", "Friday", "2023-05-12", "", "day"),
    ("I got it Friday at 3pm", "Friday", "2023-05-05", "", "day"),
    ("a week from Friday", "a week from Friday", "2023-05-19", "", "day"),
    ("I've known her for ten years", "for ten years", "2013-05-10", "2023-05-10", "span"),
    ("She told me to rest for two weeks", "for two weeks", "2023-05-10", "2023-05-24", "span"),
    ("I lived there for three years", "for three years", "2020-05-10", "2023-05-10", "span"),
    ("for 3 years now", "for 3 years now", "2020-05-10", "2023-05-10", "span"),
    ("Seven years now, and counting", "Seven years now", "2016-05-10", "2023-05-10", "span"),
    ("I'll be away for two weeks", "for two weeks", "2023-05-10", "2023-05-24", "span"),
    ("the past three months", "the past three months", "2023-02-10", "2023-05-10", "span"),
    ("in the last year", "in the last year", "2022-05-10", "2023-05-10", "span"),
    ("over the next few days", "over the next few days", "2023-05-10", "2023-05-13", "span"),
    ("in the next two weeks", "in the next two weeks", "2023-05-10", "2023-05-24", "span"),
    ("I'll be done in the next 3 days", "in the next 3 days", "2023-05-10", "2023-05-13", "span"),
    ("the week after next", "the week after next", "2023-05-22", "2023-05-28", "week"),
    ("the weekend after next", "the weekend after next", "2023-05-27", "2023-05-28", "weekend"),
    ("month after next", "month after next", "2023-07-01", "2023-07-31", "month"),
    ("the Friday after next", "the Friday after next", "2023-05-26", "", "day"),
    ("today is Wednesday", "Wednesday", "2023-05-10", "", "day"),
    ("today, Wednesday, I ran", "Wednesday", "2023-05-10", "", "day"),
    ("I ran on Wednesday", "Wednesday", "2023-05-03", "", "day"),
    ("We meet on Friday the 19th", "Friday the 19th", "2023-05-19", "", "day"),
    ("We met on Monday, the 17th", "Monday, the 17th", "2023-04-17", "", "day"),
    ("until Friday the 12th", "until Friday the 12th", "2023-05-10", "2023-05-12", "span"),
    ("the end of the month", "the end of the month", "2023-05-21", "2023-05-31", "span"),
    ("early next year", "early next year", "2024-01-01", "2024-04-30", "span"),
]

CALENDAR = [
    ("on 8 May we met", "8 May", "2023-05-08", "", "day"),
    ("it starts on 8 June", "8 June", "2023-06-08", "", "day"),
    ("we met on 8 June", "8 June", "2022-06-08", "", "day"),
    ("May 8th 2023", "May 8th 2023", "2023-05-08", "", "day"),
    ("the 8th of May, 2021", "8th of May, 2021", "2021-05-08", "", "day"),
    ("Monday, May 8th", "Monday, May 8th", "2023-05-08", "", "day"),
    ("due 2023-05-08.", "2023-05-08", "2023-05-08", "", "day"),
    ("at 2023-05-08T10:00", "2023-05-08", "2023-05-08", "", "day"),
    ("2023/05/30", "2023/05/30", "2023-05-30", "", "day"),
    ("08/05/2023", "08/05/2023", "2023-08-05", "", "day"),
    ("25/05/2023", "25/05/2023", "2023-05-25", "", "day"),
    ("05/25/2023", "05/25/2023", "2023-05-25", "", "day"),
    ("12.05.2023", "12.05.2023", "2023-05-12", "", "day"),
    ("May 8-10, 2023", "May 8-10, 2023", "2023-05-08", "2023-05-10", "span"),
    ("between 8 and 10 May 2023", "between 8 and 10 May 2023", "2023-05-08", "2023-05-10", "span"),
    ("I left on the 15th.", "the 15th", "2023-04-15", "", "day"),
    ("I met them on the 5th after my trip", "the 5th", "2023-05-05", "", "day"),
    ("I will pay on the 15th", "the 15th", "2023-05-15", "", "day"),
    ("the 15th of last month", "the 15th of last month", "2023-04-15", "", "day"),
    ("I moved in May", "May", "2023-05-01", "2023-05-31", "month"),
    ("I moved in June", "June", "2022-06-01", "2022-06-30", "month"),
    ("we will move in June", "June", "2023-06-01", "2023-06-30", "month"),
    ("The lease ends in March.", "March", "2024-03-01", "2024-03-31", "month"),
    ("My birthday is in March. I met her there", "March", "2024-03-01", "2024-03-31", "month"),
    ("I joined in Sept. and left", "Sept.", "2022-09-01", "2022-09-30", "month"),
    ("Did you have any trips in April?", "April", "2023-04-01", "2023-04-30", "month"),
    ("in May 2021", "May 2021", "2021-05-01", "2021-05-31", "month"),
    ("September 2019 was hot", "September 2019", "2019-09-01", "2019-09-30", "month"),
    ("last May we met", "last May", "2022-05-01", "2022-05-31", "month"),
    ("last August", "last August", "2022-08-01", "2022-08-31", "month"),
    ("next March", "next March", "2024-03-01", "2024-03-31", "month"),
    ("mid-May", "mid-May", "2023-05-11", "2023-05-20", "span"),
    ("early August, 2023", "early August, 2023", "2023-08-01", "2023-08-10", "span"),
    ("the second week of November 2022", "the second week of November 2022",
     "2022-11-08", "2022-11-14", "week"),
    ("the last week of September 2023", "the last week of September 2023",
     "2023-09-24", "2023-09-30", "week"),
    ("first weekend of August 2023", "first weekend of August 2023",
     "2023-08-05", "2023-08-06", "weekend"),
    ("the first Monday of May 2023", "the first Monday of May 2023", "2023-05-01", "", "day"),
    ("the first half of September 2022", "the first half of September 2022",
     "2022-09-01", "2022-09-15", "span"),
    ("born in May 2021", "May 2021", "2021-05-01", "2021-05-31", "month"),
    ("born between May and July 2021", "between May and July 2021",
     "2021-05-01", "2021-07-31", "span"),
    ("he was born last June", "last June", "2022-06-01", "2022-06-30", "month"),
    ("born in 2019", "2019", "2019-01-01", "2019-12-31", "year"),
    ("in the 90s", "the 90s", "1990-01-01", "1999-12-31", "span"),
    ("the 1980s", "the 1980s", "1980-01-01", "1989-12-31", "span"),
    ("the '60s", "the '60s", "1960-01-01", "1969-12-31", "span"),
    ("since 2021", "since 2021", "2021-01-01", "2023-05-10", "span"),
    ("ever since March 2020", "ever since March 2020", "2020-03-01", "2023-05-10", "span"),
    ("from 2019 on", "from 2019 on", "2019-01-01", "2023-05-10", "span"),
    ("from May 2021 to July 2022", "from May 2021 to July 2022",
     "2021-05-01", "2022-07-31", "span"),
    ("May to July 2021", "May to July 2021", "2021-05-01", "2021-07-31", "span"),
    ("between August 11 and August 15 2023", "between August 11 and August 15 2023",
     "2023-08-11", "2023-08-15", "span"),
    ("between November and February we were abroad", "between November and February",
     "2022-11-01", "2023-02-28", "span"),
    ("We open from Monday to Friday", "from Monday to Friday",
     "2023-05-08", "2023-05-12", "span"),
    ("I'm on vacation from Monday to Friday.", "from Monday to Friday",
     "2023-05-15", "2023-05-19", "span"),
    ("between Monday and Friday", "between Monday and Friday",
     "2023-05-08", "2023-05-12", "span"),
    ("I'm away Monday through Wednesday.", "Monday through Wednesday",
     "2023-05-15", "2023-05-17", "span"),
    ("I was ill from Monday to Friday.", "from Monday to Friday",
     "2023-05-01", "2023-05-05", "span"),
    ("from next Monday to Friday", "from next Monday to Friday",
     "2023-05-15", "2023-05-19", "span"),
    ("We were there from Friday to Sunday.", "from Friday to Sunday",
     "2023-05-05", "2023-05-07", "span"),
    ("here until Friday", "until Friday", "2023-05-10", "2023-05-12", "span"),
    ("last summer we hiked", "last summer", "2022-06-01", "2022-08-31", "season"),
    ("this summer", "this summer", "2023-06-01", "2023-08-31", "season"),
    ("next winter", "next winter", "2023-12-01", "2024-02-29", "season"),
    ("the summer of 2022", "the summer of 2022", "2022-06-01", "2022-08-31", "season"),
    ("we went there in the fall", "the fall", "2022-09-01", "2022-11-30", "season"),
    ("New Year's Eve was loud", "New Year's Eve", "2022-12-31", "", "day"),
    ("we met at Christmas", "Christmas", "2022-12-25", "", "day"),
    ("last Christmas", "last Christmas", "2022-12-25", "", "day"),
    ("this Christmas", "this Christmas", "2023-12-25", "", "day"),
    ("Thanksgiving 2022", "Thanksgiving 2022", "2022-11-24", "", "day"),
    ("next Easter", "next Easter", "2024-03-31", "", "day"),
    ("Mother’s Day was nice", "Mother’s Day", "2022-05-08", "", "day"),
    ("the week before 16 November 2023", "the week before 16 November 2023",
     "2023-11-06", "2023-11-12", "week"),
    ("the day before Christmas 2021", "the day before Christmas 2021", "2021-12-24", "", "day"),
    ("the Friday before 15 July 2023", "the Friday before 15 July 2023", "2023-07-14", "", "day"),
    ("two weekends before 17 July 2023", "two weekends before 17 July 2023",
     "2023-07-08", "2023-07-09", "weekend"),
    ("the weekend of 24 June 2022", "the weekend of 24 June 2022",
     "2022-06-25", "2022-06-26", "weekend"),
    ("the week of 23 August 2023", "the week of 23 August 2023",
     "2023-08-21", "2023-08-27", "week"),
    ("last weekend before April 10, 2023", "last weekend before April 10, 2023",
     "2023-04-08", "2023-04-09", "weekend"),
    ("two weeks before 11 August 2023", "two weeks before 11 August 2023", "2023-07-28", "", "day"),
    ("it broke; I had called the week before.", "the week before",
     "2023-05-01", "2023-05-07", "week"),
    ("On 8 May 2022 it broke. I had called the day before.", "the day before",
     "2022-05-07", "", "day"),
]  # fmt: skip

EDGES = [
    # Across months, years, leap days and the ends of weeks.
    ("yesterday", "2024-03-01", "2024-02-29", "2024-02-29"),
    ("yesterday", "2023-03-01", "2023-02-28", "2023-02-28"),
    ("yesterday", "2023-01-01", "2022-12-31", "2022-12-31"),
    ("tomorrow", "2023-12-31", "2024-01-01", "2024-01-01"),
    ("last week", "2023-01-02", "2022-12-26", "2023-01-01"),
    ("last week", "2023-01-01", "2022-12-19", "2022-12-25"),
    ("next week", "2023-12-31", "2024-01-01", "2024-01-07"),
    ("last month", "2023-03-31", "2023-02-01", "2023-02-28"),
    ("last month", "2024-01-31", "2023-12-01", "2023-12-31"),
    ("next month", "2023-12-15", "2024-01-01", "2024-01-31"),
    ("one month ago", "2024-03-31", "2024-02-01", "2024-02-29"),
    ("I stayed for one month", "2024-03-31", "2024-02-29", "2024-03-31"),
    ("I stayed for one year", "2024-02-29", "2023-02-28", "2024-02-29"),
    ("last weekend", "2023-07-22", "2023-07-15", "2023-07-16"),
    ("last weekend", "2023-07-23", "2023-07-15", "2023-07-16"),
    ("last weekend", "2023-07-24", "2023-07-22", "2023-07-23"),
    ("this weekend", "2023-07-23", "2023-07-22", "2023-07-23"),
    ("last Sunday", "2023-07-23", "2023-07-16", "2023-07-16"),
    ("last Sunday", "2023-07-24", "2023-07-23", "2023-07-23"),
    ("next Monday", "2023-07-23", "2023-07-24", "2023-07-24"),
    ("next Monday", "2023-07-24", "2023-07-31", "2023-07-31"),
    ("I met him on 29 February", "2023-05-10", "2020-02-29", "2020-02-29"),
    ("I left on the 31st.", "2023-05-10", "2023-03-31", "2023-03-31"),
    ("last winter", "2023-01-15", "2021-12-01", "2022-02-28"),
    ("this winter", "2023-01-15", "2022-12-01", "2023-02-28"),
    ("last summer", "2023-12-26", "2023-06-01", "2023-08-31"),
    ("last summer", "2023-08-11", "2022-06-01", "2022-08-31"),
    ("last December", "2023-01-01", "2022-12-01", "2022-12-31"),
    ("3 hours ago", "2023-05-10T01:30", "2023-05-09", "2023-05-09"),
]

TRAPS = [
    # Of no one day
    "Every Tuesday at ten there is a call.",
    "Each Monday I fast.",
    "Every first Monday of the month we meet.",
    "Every May we go to Crete.",
    "Every year in May we go to Crete.",
    "On Monday mornings I swim.",
    # Which one depends on what was asked before
    "Thursday morning please",
    "No, on Saturday.",
    "Saturday or Sunday",
    "The meeting moved from Monday to Thursday.",
    # From when on, nobody says
    "Rest for two weeks.",
    "The ticket is valid for 30 days.",
    "I have a car for three days.",
    "We booked the flat for two weeks.",
    "for two weeks",
    "You may go.",
    "May I ask you something?",
    "It may 5 times out of ten.",
    "They march on, and on.",
    "We march 5 miles every day",
    "Wait a second.",
    "Give it a second look.",
    "the second one",
    "Sit in the sun.",
    "He set the sun dial; he sat down.",
    "Don't fall down.",
    "I will fall for it",
    "spring water",
    "The 15th century and the 3rd floor",
    "my 18th birthday",
    "every Tuesday we train",
    "they meet every Saturday and Sunday. Often",
    "Monday: rest\n* **Tuesday:** run",
    "our Sunday roast",
    "the first Friday after that",
    "* December: review",
    "during spring migration",
    "8. August\n9. Ana\n",
    "I do yoga on Tuesdays and Thursdays",
    "a Monday like any other",
    "the Christmas tree is up",
    "Halloween costumes",
    "once a week",
    "twice in a week",
    "per month",
    "24/7 support",
    "1/2 of it",
    "version 1.2.3",
    "call 555-1234",
    "2/30/2023",
    "2023-02-30",
    "February 29, 2023",
    "31 April 2024",
    "the 31st of April",
    "We met on Tuesday the 10th.",
    "I was born in June.",
    "She was born in Lisbon on May 20.",
    "in 2000 words",
    "it costs $2019",
    "2019 people came",
    "in her 30s",
    "I read it in three days.",
    "he is 10 years old",
    "my five-year-old",
    "the last name, the last time, the next door",
    "John May said so",
    "Wednesday Addams is great",
    "the hotel on Friday Harbor",
    "we plan with Monday.com there",
    "we watched Friday the 13th",
    "recently, lately, someday, now",
    "he came two days back to back",
    "for two hours",
    "a while ago, ages ago",
    "the weekly meeting",
    "an august body",
    "the mayor marched",
]


@pytest.mark.parametrize(("text", "words", "first", "last", "grain"), RELATIVE + CALENDAR)
def test_resolves(text: str, words: str, first: str, last: str, grain: str) -> None:
    found = next((f for f in resolve_times(text, WEDNESDAY) if f.text == words), None)
    assert found is not None, _spans(text)
    assert (found.first, found.last, found.grain) == (first, last or first, grain)


@pytest.mark.parametrize(("text", "anchor", "first", "last"), EDGES)
def test_calendar_edges(text: str, anchor: str, first: str, last: str) -> None:
    found = resolve_times(text, _at(anchor))
    assert [(f.first, f.last) for f in found] == [(first, last)]


@pytest.mark.parametrize("text", TRAPS)
def test_is_no_date(text: str) -> None:
    assert _spans(text) == []


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("before 2019", None, "2018-12-31"),
        ("after May 8", "2023-05-09", None),
        ("until 2020 we lived here", None, "2020-12-31"),
        ("by the 15th I will have it", "2023-05-10", "2023-05-15"),
        ("prior to May 2021", None, "2021-04-30"),
    ],
)
def test_open_ends(text: str, first: str | None, last: str | None) -> None:
    assert [(f.first, f.last) for f in resolve_times(text, WEDNESDAY)] == [(first, last)]


def test_text_order_without_overlap() -> None:
    text = "Last week, on 8 May 2023, and the day before yesterday: since 2021 until tomorrow."
    found = resolve_times(text, WEDNESDAY)
    assert [f.text for f in found] == [
        "Last week", "8 May 2023", "the day before yesterday", "since 2021", "until tomorrow",
    ]  # fmt: skip
    assert all(text[f.start : f.end] == f.text for f in found)


def test_without_an_anchor_only_absolute_dates_resolve() -> None:
    text = "Yesterday, last week, in May, on Tuesday, the 15th, but on 8 May 2021 and in 2019."
    assert _spans(text, None) == [
        ("8 May 2021", "2021-05-08", "2021-05-08"),
        ("2019", "2019-01-01", "2019-12-31"),
    ]


def test_an_open_since_needs_no_anchor() -> None:
    assert _spans("since 2021", None) == [("since 2021", "2021-01-01", None)]


def test_the_anchors_own_date_counts_not_utc() -> None:
    late = datetime(2023, 5, 9, 23, 30, tzinfo=timezone(timedelta(hours=-7)))
    assert _spans("today", late) == [("today", "2023-05-09", "2023-05-09")]


def test_dates_that_leave_the_calendar_are_dropped() -> None:
    assert _spans("900 decades ago", WEDNESDAY) == []
    assert _spans("yesterday", datetime(1, 1, 1)) == []
    assert _spans("next year", datetime(9999, 6, 1)) == []


_PIECES = st.sampled_from(
    """
    last next this week month year may march the of in on 8 15th 31 2023 since until before after
    between and from to for two few ago Friday Sun weekend day days years summer Christmas 's , . -
    1/2/2023 2023-02-30 early end first second half 90s couple an a now 29 February 0 999
    """.split()  # noqa: SIM905
)


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(st.text(max_size=80), st.lists(_PIECES, max_size=14).map(" ".join)),
    st.one_of(st.none(), st.datetimes()),
)
def test_any_text_gives_valid_ordered_spans(text: str, anchor: datetime | None) -> None:
    found = resolve_times(text, anchor)
    position = 0
    for item in found:
        assert position <= item.start < item.end <= len(text)
        assert text[item.start : item.end] == item.text
        assert item.first is not None or item.last is not None
        if item.first and item.last:
            assert date.fromisoformat(item.first) <= date.fromisoformat(item.last)
        assert item.grain in {"day", "week", "weekend", "month", "season", "year", "span"}
        assert describe(item)
        position = item.end
    assert found == resolve_times(text, anchor)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("yesterday", "9 May 2023"),
        ("last week", "1–7 May 2023"),
        ("two weeks ago", "24–30 April 2023"),
        ("the week of 1 March 2023", "27 February – 5 March 2023"),
        ("in May 2021", "May 2021"),
        ("last year", "2022"),
        ("in the 90s", "1990–1999"),
        ("last summer", "summer 2022"),
        ("next winter", "winter 2023–2024"),
        ("May to July 2021", "May–July 2021"),
        ("from November 2021 to March 2022", "November 2021 – March 2022"),
        ("I stayed for one year", "10 May 2022 – 10 May 2023"),
        ("before 2019", "until 31 December 2018"),
        ("after 8 May 2023", "from 9 May 2023"),
    ],
)
def test_describes_in_words(text: str, words: str) -> None:
    assert describe(resolve_times(text, WEDNESDAY)[0]) == words


def test_describe_of_nothing_is_empty() -> None:
    assert describe(TimeExpression("x", 0, 1, None, None, "span")) == ""


def test_format_day() -> None:
    assert format_day(date(2023, 5, 8)) == "8 May 2023"
    assert format_day(date(987, 12, 31)) == "31 December 987"


@pytest.mark.parametrize(
    ("value", "utc", "naive"),
    [
        ("2023-05-08T13:56:00Z", "2023-05-08T13:56:00", False),
        ("2023-05-08T13:56:00z", "2023-05-08T13:56:00", False),
        ("2023-05-08T13:56:00+02:00", "2023-05-08T11:56:00", False),
        ("2023-05-08 13:56", "2023-05-08T13:56:00", True),
        ("2023-05-08", "2023-05-08T00:00:00", True),
        ("20230508t135600", "2023-05-08T13:56:00", True),
        ("2023-W19-1T13:56", "2023-05-08T13:56:00", True),
        ("2023W19 13:56", "2023-05-08T13:56:00", True),
        ("  2023-05-08 ", "2023-05-08T00:00:00", True),
        ("1:56 pm on 8 May, 2023", "2023-05-08T13:56:00", True),
        ("12:09 am on 13 September, 2023", "2023-09-13T00:09:00", True),
        ("12:00 pm on 1 January 2024", "2024-01-01T12:00:00", True),
        ("8 May 2023, 1:56 pm", "2023-05-08T13:56:00", True),
        ("2023/05/30 (Tue) 20:08", "2023-05-30T20:08:00", True),
        ("2023/05/30", "2023-05-30T00:00:00", True),
        (0, "1970-01-01T00:00:00", False),
        (1683554160.5, "2023-05-08T13:56:00.500000", False),
        (date(2023, 5, 8), "2023-05-08T00:00:00", True),
        (datetime(2023, 5, 8, 13, 56), "2023-05-08T13:56:00", True),
        (datetime(2023, 5, 8, 13, 56, tzinfo=timezone(timedelta(hours=2))),
         "2023-05-08T11:56:00", False),
    ],
)  # fmt: skip
def test_reads_timestamps(value: str | datetime | date | float, utc: str, naive: bool) -> None:
    parsed = parse_timestamp(value)
    assert parsed.utc == datetime.fromisoformat(utc).replace(tzinfo=UTC)
    assert parsed.utc.tzinfo is UTC
    assert parsed.naive is naive


@pytest.mark.parametrize(
    ("value", "is_day"),
    [
        ("2023-05-08", True), (" 20230508 ", True), ("2023-W19-1", True), ("8 May 2023", True),
        ("2023/05/30 (Tue)", True), (date(2023, 5, 8), True),
        (1683554160, False), (1683554160.5, False), (0, False), ("2023-05-08T00:00", False),
        ("20230508T00", False), ("8 May 2023, 12:00 am", False), (datetime(2023, 5, 8), False),
    ],
)  # fmt: skip
def test_tells_a_day_from_a_moment(value: str | datetime | date | float, is_day: bool) -> None:
    assert parse_timestamp(value).is_day is is_day


def test_a_timestamp_text_is_kept_as_given() -> None:
    assert parse_timestamp("1:56 pm on 8 May, 2023").given == "1:56 pm on 8 May, 2023"


@pytest.mark.parametrize(
    "value",
    ["", "yesterday", "May", "13:56", "2023-13-01", "2023-02-30", "25:00 on 8 May, 2023",
     "13:56 pm on 8 May, 2023", "8 Mai 2023", "2023/02/30 (Thu) 10:00", float("nan"),
     float("inf"), 1e20, True, None, "0001-01-01T00:00:00+14:00", "\ud800", "x" * 10_000,
     "1701010112000", "1701010112", "2023-05-08-13:56"],
)  # fmt: skip
def test_refuses_other_timestamps(value: object) -> None:
    with pytest.raises(InputError, match="ISO 8601") as caught:
        parse_timestamp(value)  # type: ignore[arg-type]
    assert caught.value.code == "input.timestamp"


def _repaired(answer: str) -> str:
    """Gold answers with a missing space ("14September") or a bare year, made readable."""
    answer = re.sub(r"(\d)`? ?([A-Z][a-z]+)", r"\1 \2", answer)
    answer = re.sub(r"\.(\d{4})", r" \1", answer)
    return re.sub(r"^(?:In )?(\d{4})$", r"in \1", answer)


def test_locomo_evidence_dates() -> None:
    """Most gold dates of the temporal category are read from the evidence turn alone."""
    path = DATA / "locomo" / "locomo_dev5.json.gz"
    if not path.exists():
        pytest.skip(f"LoCoMo dev data not found at {path}; set EBBTIDE_DATA")
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        samples = json.load(stream)
    equal = stated = 0
    for sample in samples:
        turns = {}
        for key, session in sample["conversation"].items():
            if isinstance(session, list):
                moment = parse_timestamp(sample["conversation"][f"{key}_date_time"]).utc
                turns |= {t["dia_id"]: resolve_times(t["text"], moment) for t in session}
        for question in sample["qa"]:
            if question["category"] != 2:
                continue
            gold = resolve_times(_repaired(str(question["answer"])), None)
            ids = re.findall(r"D\d+:\d+", " ".join(question["evidence"]))
            found = [f for i in ids for f in turns.get(i, ())]
            if gold and gold[0].first and gold[0].last and found:
                stated += 1
                equal += any((f.first, f.last) == (gold[0].first, gold[0].last) for f in found)
    assert stated >= 105
    assert equal / stated >= 0.80
