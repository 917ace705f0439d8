"""Reading language: from a turn's text to the plain facts the engine decides on."""
