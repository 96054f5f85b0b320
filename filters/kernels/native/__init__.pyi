from filters.kernels.python import *  # noqa: F403 - the same classes, listed there
