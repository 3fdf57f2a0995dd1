"""Twenty times the property-based cases of the suite, other ones each time: some 25,000, in about twenty minutes.

python tests/checks/properties.py            # twenty times
python tests/checks/properties.py --times 3 -k config_json
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "properties"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20, help="cases for each of the suite's (default %(default)s)")
    arguments, others = parser.parse_known_args()
    if arguments.times < 2:
        parser.error("--times 1 is what the suite runs")
    environment = os.environ | {"PROPERTY_CASES": str(arguments.times)}
    return subprocess.run([sys.executable, "-m", "pytest", "-v", str(FOLDER), *others], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
