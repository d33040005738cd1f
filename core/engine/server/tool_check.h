/* Checks a call against the schemas of its tool: the arguments before the handler runs,
 * and the structured content at the end. All functions are called under the lock, which
 * may be released while user code runs. */
#ifndef SGI_TOOL_CHECK_H
#define SGI_TOOL_CHECK_H

#include "engine/server/call.h"

/* Checks the arguments of the call. Returns false when they do not fit: the operation has
 * then ended, unless memory ran out. */
bool sgi_tool_check_arguments(segue_call *call);

/* Decides about a result before it is appended. content: may be NULL. Returns SEGUE_OK
 * when the result may end the operation. SEGUE_E_STATE: sgi_tool_check_result must check
 * it first. SEGUE_E_INVALID: the result lacks what the tool's outputSchema requires.
 * SEGUE_E_NOMEM: out of memory. */
segue_status sgi_tool_result_needs_check(const segue_call *call,
                                         const segue_content *content);
/* Checks the entries in call->closing. Then ends the operation with these entries, or
 * with an error. */
void sgi_tool_check_result(segue_call *call);
/* Ends the operation with an error, because its result does not fit the outputSchema. */
void sgi_tool_check_refuse(segue_call *call, const char *why);

#endif
