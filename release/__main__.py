"""`make release VERSION=x.y.z`: one commit and one tag, or nothing."""

import argparse
import sys

from release.making import ReleaseError, make_release


def main() -> int | str:
    """Returns 0, or one line for stderr."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    parser.add_argument("version", help="such as 1.2.0")
    parser.add_argument("--check", required=True, help="the command that must succeed first")
    options = parser.parse_args()
    try:
        print(make_release(version=options.version, check=options.check))  # noqa: T201
    except ReleaseError as error:
        return str(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
