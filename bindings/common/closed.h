/* What a program reads when it uses an object after its end. */
#ifndef SGB_CLOSED_H
#define SGB_CLOSED_H

/* Returns the text of a SEGUE_E_CLOSED for a handle of this kind, such as "Session". */
const char *sgb_closed_text(const char *kind);

#endif
