"""The rhythm of an attempt: when it is silent, slow, or in numeric trouble, from its own log.

Lines become pulses (``beats``), pulses are followed into a rhythm (``following``), and three
detectors ask the rhythm: ``silences``, ``slowdowns`` and ``numerics``. ``watching`` joins them
and makes each finding once. Nothing here knows the scheduler, a clock or a policy.
"""
