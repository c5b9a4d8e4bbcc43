"""What the kernel of a node wrote: when, on which host, and what it tells.

A kernel's log is the node's own word and may blame it more gravely than a job's log may. So it
is read strictly: a line without a time that can be told, of another host, or of another program
blames nobody.
"""
