/* What a tool takes and gives, against its schemas: arguments before its handler runs,
 * its structured content when it has ended. Lock held; may let it go for user code. */
#ifndef SGI_TOOL_CHECK_H
#define SGI_TOOL_CHECK_H

#include "engine/serving/call.h"

/* False when they do not fit: the operation has ended then, as far as memory let it. */
bool sgi_tool_check_arguments(segue_call *call);

/* Looks at a result that is about to be: content may be NULL. SEGUE_OK: it may be the
 * end. SEGUE_E_STATE: it has to be checked first, which sgi_tool_check_result does.
 * SEGUE_E_INVALID: it lacks what the tool's outputSchema promises. SEGUE_E_NOMEM. */
segue_status sgi_tool_check_begin(const segue_call *call, const segue_content *content);
/* Checks call->closing, and ends the operation with it, or with an error. */
void sgi_tool_check_result(segue_call *call);
/* Ends the operation: what came does not fit the outputSchema. */
void sgi_tool_check_refuse(segue_call *call, const char *why);

#endif
