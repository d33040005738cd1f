# Empties DIRECTORY, so that messages of an earlier run are not checked again.
file(REMOVE_RECURSE ${DIRECTORY})
file(MAKE_DIRECTORY ${DIRECTORY})
