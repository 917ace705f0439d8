"""Names of countries, by which a home in one is told from a home in a town."""

from __future__ import annotations

__all__ = ["COUNTRIES"]

_NAMES = """
    afghanistan, albania, algeria, andorra, angola, argentina, armenia, australia, austria,
    azerbaijan, bahamas, bahrain, bangladesh, barbados, belarus, belgium, belize, benin, bhutan,
    bolivia, bosnia, botswana, brazil, brunei, bulgaria, burkina faso, burundi, cambodia,
    cameroon, canada, chad, chile, china, colombia, congo, costa rica, croatia, cuba, cyprus,
    czechia, czech republic, denmark, dominican republic, ecuador, egypt, el salvador, england,
    eritrea, estonia, ethiopia, fiji, finland, france, gabon, gambia, germany, ghana, greece,
    grenada, guatemala, guinea, guyana, haiti, honduras, hungary, iceland, india, indonesia,
    iran, iraq, ireland, israel, italy, ivory coast, jamaica, japan, jordan, kazakhstan, kenya,
    kosovo, kuwait, kyrgyzstan, laos, latvia, lebanon, lesotho, liberia, libya, liechtenstein,
    lithuania, madagascar, malawi, malaysia, maldives, mali, malta, mauritania, mauritius,
    mexico, moldova, mongolia, montenegro, morocco, mozambique, myanmar, namibia, nepal,
    netherlands, new zealand, nicaragua, niger, nigeria, north korea, north macedonia, northern
    ireland, norway, oman, pakistan, palestine, panama, papua new guinea, paraguay, peru,
    philippines, poland, portugal, qatar, romania, russia, rwanda, samoa, saudi arabia,
    scotland, senegal, serbia, seychelles, sierra leone, slovakia, slovenia, somalia, south
    africa, south korea, south sudan, spain, sri lanka, sudan, suriname, sweden, switzerland,
    syria, taiwan, tajikistan, tanzania, thailand, togo, tonga, trinidad, tunisia, turkey,
    turkmenistan, uganda, uk, ukraine, united arab emirates, uae, united kingdom, united states,
    us, usa, uruguay, uzbekistan, vanuatu, venezuela, vietnam, wales, yemen, zambia, zimbabwe
"""
COUNTRIES = frozenset(" ".join(name.split()) for name in _NAMES.split(","))
"""In lower case, without "the"; those that are towns as well are left out."""
