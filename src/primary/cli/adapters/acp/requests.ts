import type { Aside, RequestKind } from '../../contract/adapter.js';
import { methodNotFound, type RpcId, type RpcMessage, rpcFailure, rpcResult } from '../common/json-rpc.js';

type AgentRequest = Extract<RpcMessage, { readonly type: 'request' }>;

/** How a request of the agent is answered: nothing is given, whatever it asks for. */
export function refused({ id, method }: AgentRequest): readonly Aside[] {
  const request = kindOf(method);
  const text = request === 'permission' ? notPermitted(id) : rpcFailure(id, methodNotFound, `${method} is not offered`);
  return [
    { type: 'reply', text },
    { type: 'request-refused', request },
  ];
}

function kindOf(method: string): RequestKind {
  if (method === 'session/request_permission') return 'permission';
  if (method.startsWith('fs/')) return 'files';
  return method.startsWith('terminal/') ? 'terminal' : 'other';
}

/** The one answer that chooses none of the options. */
function notPermitted(id: RpcId | null): string {
  return rpcResult(id, { outcome: { outcome: 'cancelled' } });
}
