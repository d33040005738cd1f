# An empty DIRECTORY: what an earlier run wrote down is not judged again.
file(REMOVE_RECURSE ${DIRECTORY})
file(MAKE_DIRECTORY ${DIRECTORY})
