"""The only code that opens paths which users chose.

Everything here works on descriptors, beneath a root that is opened once: no link is
followed, no mount is crossed, nothing but files and folders is ever opened.
"""
