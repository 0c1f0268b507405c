"""Storage hosts: where virtual folders live, each behind a process of its own.

A *host* is one filesystem with a *driver*, which knows its quotas. A *scope* is the
folder of one user or project on it, to which a quota applies; a *place* is one virtual
folder. All that touches people's files happens in the host's *worker*, a process that
the service starts and replaces; the service itself only talks to it.
"""
