from lsm.kernels.python import *  # noqa: F403 - the same nouns, listed there
