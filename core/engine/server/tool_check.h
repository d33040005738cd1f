/* Checks a call against the schemas of its tool: the arguments before the handler runs,
 * and the structured content at the end. The caller of each function holds the lock; the
 * lock is released while user code runs. */
#ifndef SGI_TOOL_CHECK_H
#define SGI_TOOL_CHECK_H

#include "engine/server/call.h"

/* Checks the arguments of the call. Returns false when the arguments do not fit the
 * schema; the operation has then ended. */
bool sgi_tool_check_arguments(segue_call *call);

/* Decides whether a result must be checked before it is appended. content: can be NULL.
 * Returns SEGUE_OK when the result needs no check. Returns SEGUE_E_STATE when
 * sgi_tool_check_result must check the result. Returns SEGUE_E_INVALID when the result
 * lacks a structuredContent although the tool has an outputSchema. Returns SEGUE_E_NOMEM
 * when out of memory. */
segue_status sgi_tool_result_needs_check(const segue_call *call,
                                         const segue_content *content);
/* Checks the entries in call->closing, and then ends the operation with these entries, or
 * with an error. */
void sgi_tool_check_result(segue_call *call);
/* Ends the operation with an error, because its result does not fit the outputSchema.
 * why: the reason, for the error message. */
void sgi_tool_check_fail_result(segue_call *call, const char *why);

#endif
