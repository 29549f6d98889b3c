import { isUtf8 } from 'node:buffer';
import type { Request } from 'express';
import {
  type ClientMessage,
  handshakeVersions,
  metaKeys,
  type Params,
  ProtocolError,
  rpcCodes,
  supportedVersions,
} from './messages.js';

type Headers = Pick<Request, 'get'>;

const headers = { version: 'MCP-Protocol-Version', method: 'Mcp-Method', name: 'Mcp-Name' } as const;

/**
 * Whether the message comes from a stateless client, which never sends `initialize`. Throws for an unsupported version,
 * for headers that contradict the body, and for a stateless request without its required fields.
 */
export function isStateless(req: Headers, { id, method, params }: ClientMessage): boolean {
  const headerVersion = req.get(headers.version);
  const metaVersion = metaOf(params)?.[metaKeys.version] ?? undefined;
  if (method === 'initialize' && metaVersion === undefined) return false; // the params name the version
  if (metaVersion !== undefined && typeof metaVersion !== 'string') throw invalidMeta(metaKeys.version, 'a string');
  if (metaVersion !== undefined && headerVersion !== undefined && metaVersion !== headerVersion) {
    throw headerMismatch(headers.version);
  }
  const version = metaVersion ?? headerVersion;
  if (version === undefined && method !== 'server/discover') return false;
  if (version !== undefined && !supportedVersions.includes(version)) throw unsupportedVersion(version);
  if (handshakeVersions.some((known) => known === version)) return false;
  if (id !== undefined && method !== undefined) checkStatelessRequest(req, method, params);
  return true;
}

/** Checks that the headers match the body: a proxy that reads only headers must not mistake one request for another. */
function checkStatelessRequest(req: Headers, method: string, params: Params): void {
  const meta = metaOf(params);
  const hasMetaVersion = (meta?.[metaKeys.version] ?? undefined) !== undefined;
  const hasHeaderVersion = req.get(headers.version) !== undefined;
  if (hasMetaVersion && !hasHeaderVersion) throw headerMismatch(headers.version);
  if (hasHeaderVersion && req.get(headers.method) !== method) throw headerMismatch(headers.method);
  const namesTool = method === 'tools/call' && typeof params?.name === 'string';
  if (namesTool && decodeHeader(req.get(headers.name)) !== params.name) throw headerMismatch(headers.name);
  if (!hasMetaVersion) throw invalidMeta(metaKeys.version, 'a string');
  const capabilities = meta?.[metaKeys.capabilities];
  if (Object(capabilities) !== capabilities || Array.isArray(capabilities)) {
    throw invalidMeta(metaKeys.capabilities, 'an object');
  }
}

function metaOf(params: Params): Params {
  return params?._meta as Params;
}

/** Decodes a header in which base64 may stand between markers. Returns undefined if that is not base64 of UTF-8 text. */
function decodeHeader(value: string | undefined): string | undefined {
  const [, base64] = /^=\?base64\?(.*)\?=$/.exec(value ?? '') ?? [];
  if (base64 === undefined) return value;
  const bytes = Buffer.from(base64, 'base64');
  return bytes.toString('base64') === base64 && isUtf8(bytes) ? bytes.toString() : undefined;
}

function invalidMeta(key: string, type: string): ProtocolError {
  return new ProtocolError(rpcCodes.invalidParams, `params._meta['${key}'] must be ${type}`, 400);
}

function headerMismatch(name: string): ProtocolError {
  return new ProtocolError(rpcCodes.headerMismatch, `the header ${name} must match the body of the request`, 400);
}

function unsupportedVersion(version: string): ProtocolError {
  const message = `unsupported protocol version; this server supports ${supportedVersions.join(', ')}`;
  const data = { supported: supportedVersions, requested: version.slice(0, 64) };
  return new ProtocolError(rpcCodes.unsupportedVersion, message, 400, data);
}
