"""How far a run has come: from the lines that have a shape of progress to figures.

Only a completed step and a completed checkpoint count (law 8). ``readings`` reads one line,
``tallies`` counts what many lines tell, ``runs`` tells the runs of one file apart, ``states``
is what is remembered between readings, and ``sampling`` says which lines need to be read.
"""
