import sys

# Importing jsonschema's IRI grammar costs seconds, and nothing here needs it. Marked
# as absent before any handler imports JupyterHub, it is left out.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
