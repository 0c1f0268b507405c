"""The ``backendai`` command for people and scripts: asking a platform, wherever it is.

What looks after the platform's own processes is in the launcher; here is only what
goes over the API.
"""
