import type { Request } from 'express';
import { invalid } from '../../shared/errors.js';
import { greetingVersions, metaKeys, type Params, rpcErrors, statelessVersions, WrongCall } from './messages.js';

/** Refuses a request in a version that is not known, or whose headers say something else than its body. */
export function checkVersion(req: Pick<Request, 'get'>, method: string | undefined, params: Params): void {
  const sent = req.get(headers.version);
  const named = (params?._meta as Params)?.[metaKeys.version];
  if (typeof named === 'string') return checkStateless(req, named, method, params);
  if (sent !== undefined && !greetingVersions.some((known) => known === sent))
    throw invalid(headers.version, `must be one of ${greetingVersions.join(', ')}, or the request must have it too`);
}

const headers = { version: 'MCP-Protocol-Version', method: 'Mcp-Method', name: 'Mcp-Name' } as const;

/** A front that reads headers alone must not take the request for another one. */
function checkStateless(req: Pick<Request, 'get'>, version: string, method: string | undefined, params: Params): void {
  if (!statelessVersions.some((known) => known === version)) {
    const data = { supported: [...statelessVersions, ...greetingVersions], requested: version.slice(0, 64) };
    throw new WrongCall(rpcErrors.unknownVersion, 'this version of the protocol is not supported', 400, data);
  }
  checkHeader(req, headers.version, version);
  if (method === undefined) return;
  checkHeader(req, headers.method, method);
  if (method === 'tools/call' && typeof params?.name === 'string') checkHeader(req, headers.name, params.name);
}

function checkHeader(req: Pick<Request, 'get'>, name: string, expected: string): void {
  if (req.get(name) !== expected)
    throw new WrongCall(rpcErrors.otherHeader, `the header ${name} must say what the request says`, 400);
}
