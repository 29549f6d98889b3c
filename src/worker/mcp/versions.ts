import { isUtf8 } from 'node:buffer';
import type { Request } from 'express';
import {
  greetingVersions,
  metaKeys,
  type Params,
  rpcErrors,
  type SentMessage,
  supportedVersions,
  WrongCall,
} from './messages.js';

type Headers = Pick<Request, 'get'>;

const headers = { version: 'MCP-Protocol-Version', method: 'Mcp-Method', name: 'Mcp-Name' } as const;

/**
 * Whether the message comes from a stateless client, which never sends `initialize`. Throws for an unknown version, for
 * headers that contradict the body, and for a stateless request without its required fields.
 */
export function isStateless(req: Headers, sent: SentMessage): boolean {
  const { id, method, params } = sent;
  const meta = params?._meta as Params;
  const [header, named] = [req.get(headers.version), meta?.[metaKeys.version] ?? undefined];
  if (method === 'initialize' && named === undefined) return false; // the params name the version
  if (named !== undefined && typeof named !== 'string') throw wrongMeta(metaKeys.version, 'a string');
  if (named !== undefined && header !== undefined && named !== header) throw otherHeader(headers.version);
  const version = named ?? header;
  if (version === undefined && method !== 'server/discover') return false;
  if (version !== undefined && !supportedVersions.includes(version)) throw unknownVersion(version);
  if (greetingVersions.some((known) => known === version)) return false;
  if (id !== undefined && method !== undefined) checkRequest(req, method, params);
  return true;
}

/**
 * Checks that the headers match the body: a front that reads only headers must not mistake the request for another one.
 */
function checkRequest(req: Headers, method: string, params: Params): void {
  const meta = params?._meta as Params;
  const version = meta?.[metaKeys.version] ?? undefined;
  const [header, sentMethod] = [req.get(headers.version), req.get(headers.method)];
  if (version !== undefined && header === undefined) throw otherHeader(headers.version);
  if (header !== undefined && sentMethod !== method) throw otherHeader(headers.method);
  const isNamed = method === 'tools/call' && typeof params?.name === 'string';
  if (isNamed && decoded(req.get(headers.name)) !== params.name) throw otherHeader(headers.name);
  if (version === undefined) throw wrongMeta(metaKeys.version, 'a string');
  const capabilities = meta?.[metaKeys.capabilities];
  if (Object(capabilities) !== capabilities || Array.isArray(capabilities))
    throw wrongMeta(metaKeys.capabilities, 'an object');
}

/**
 * Decodes a header. A name that is invalid in a header is sent as base64 between markers. Returns undefined if that is
 * not the base64 of a text.
 */
function decoded(value: string | undefined): string | undefined {
  const [, base64] = /^=\?base64\?(.*)\?=$/.exec(value ?? '') ?? [];
  if (base64 === undefined) return value;
  const bytes = Buffer.from(base64, 'base64');
  return bytes.toString('base64') === base64 && isUtf8(bytes) ? bytes.toString() : undefined;
}

function wrongMeta(key: string, type: string): WrongCall {
  return new WrongCall(rpcErrors.wrongParams, `params._meta['${key}'] must be ${type}`, 400);
}

function otherHeader(name: string): WrongCall {
  return new WrongCall(rpcErrors.otherHeader, `the header ${name} must say what the request says`, 400);
}

function unknownVersion(version: string): WrongCall {
  const message = `this version of the protocol is not supported: there are ${supportedVersions.join(', ')}`;
  const data = { supported: supportedVersions, requested: version.slice(0, 64) };
  return new WrongCall(rpcErrors.unknownVersion, message, 400, data);
}
