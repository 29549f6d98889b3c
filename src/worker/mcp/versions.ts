import type { Request } from 'express';
import { greetingVersions, metaKeys, type Params, rpcErrors, statelessVersions, WrongCall } from './messages.js';

/** Refuses a request in a version that is not known, or whose headers say something else than its body. */
export function checkVersion(req: Pick<Request, 'get'>, method: string | undefined, params: Params): void {
  const sent = req.get(headers.version);
  const named = (params?._meta as Params)?.[metaKeys.version];
  if (typeof named === 'string') return checkStateless(req, named, method, params);
  if (sent === undefined || greetingVersions.some((known) => known === sent)) return;
  throw statelessVersions.some((known) => known === sent) ? otherHeader(headers.version) : unknownVersion(sent);
}

const headers = { version: 'MCP-Protocol-Version', method: 'Mcp-Method', name: 'Mcp-Name' } as const;

/** A front that reads headers alone must not take the request for another one. */
function checkStateless(req: Pick<Request, 'get'>, version: string, method: string | undefined, params: Params): void {
  if (!statelessVersions.some((known) => known === version)) throw unknownVersion(version);
  checkHeader(req, headers.version, version);
  if (method === undefined) return;
  checkHeader(req, headers.method, method);
  if (method === 'tools/call' && typeof params?.name === 'string') checkHeader(req, headers.name, params.name);
}

function checkHeader(req: Pick<Request, 'get'>, name: string, expected: string): void {
  if (req.get(name) !== expected) throw otherHeader(name);
}

function otherHeader(name: string): WrongCall {
  return new WrongCall(rpcErrors.otherHeader, `the header ${name} must say what the request says`, 400);
}

function unknownVersion(version: string): WrongCall {
  const supported = [...statelessVersions, ...greetingVersions];
  const message = `this version of the protocol is not supported: there are ${supported.join(', ')}`;
  return new WrongCall(rpcErrors.unknownVersion, message, 400, { supported, requested: version.slice(0, 64) });
}
