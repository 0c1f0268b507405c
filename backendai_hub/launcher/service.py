"""The hub service as a program: ``python -m backendai_hub.launcher.service``."""

from __future__ import annotations

from backendai_hub.launcher.importing import imports


def main(argv: list[str] | None = None) -> None:
    """Import the hub service, and run it."""
    with imports():
        from backendai_hub.app import main as run  # noqa: PLC0415 - see `imports`

    run(argv)


if __name__ == "__main__":
    main()
