import sys
from pathlib import Path

# The makers of packages and modules are shared with the tests one folder up.
sys.path.insert(0, str(Path(__file__).parent.parent))
