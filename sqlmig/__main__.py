"""`python -m sqlmig`."""

from sqlmig.cli import main

if __name__ == "__main__":
    main()
