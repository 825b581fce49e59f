"""`python -m bottleneck_doctor` is `doctor`."""

import sys

from bottleneck_doctor.cli import main

if __name__ == "__main__":
    sys.exit(main())
