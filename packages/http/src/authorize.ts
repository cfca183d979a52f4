/** Who may do what: asked before anything is read or done. */
import { ConfigurationError, type Principal } from '@lousho/contract';
import { failure } from './responses.ts';

/** What a request is about to do. */
export interface Access {
  /** `decide`: an approval or a question. */
  readonly action: 'read' | 'send' | 'decide' | 'stop' | 'delete';
  /** Absent: of every conversation. */
  readonly sessionId?: string;
}

/**
 * Whether this request may do that, and on whose behalf: a principal is stored with what it sends and with what it decides. A `Response` is
 * given back as it is; `false` is 403.
 */
export type Authorize = (
  request: Request,
  access: Access,
) => boolean | Principal | Response | Promise<boolean | Principal | Response>;

/** Does the work of a request that may be done. */
export type Guard = (
  request: Request,
  access: Access,
  work: (principal: Principal | undefined) => Promise<Response>,
) => Promise<Response>;

/** Without an `authorize` everybody could approve everything. @throws LOUSHO_CONFIG_INVALID */
export function guard(authorize: Authorize): Guard {
  if (typeof authorize !== 'function')
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
      option: 'authorize',
      got: authorize,
      want: 'a function that says who may do what, for example (request) => userOf(request) ?? false',
    });
  return async (request, access, work) => {
    const answer = await authorize(request, access);
    if (answer === true) return work(undefined);
    if (answer instanceof Response) return answer;
    if (typeof answer === 'object' && typeof answer?.id === 'string') return work(answer);
    return failure(403, 'FORBIDDEN', 'This is not yours to do.');
  };
}
