import type { ToolResult } from '../../contract/adapter.js';
import { piecesOf } from './transcript.js';

/** The Model Context Protocol, as far as a program has the client's tools by it. */

/** What the program calls our server: it stands before the names of its tools, or in rules for them. */
export const serverName = 'relay';

/** The answer to `initialize`. */
export function serverInfo(protocolVersion: string): object {
  return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: serverName, version: '1' } };
}

/** The answer to `tools/call`. */
export function callResult(result: ToolResult): object {
  return { content: piecesOf(result).flatMap(contentOf), isError: result.isError };
}

function contentOf(piece: ReturnType<typeof piecesOf>[number]): object[] {
  if (typeof piece !== 'string') return [{ type: 'image', data: piece.data, mimeType: piece.mediaType }];
  return piece === '' ? [] : [{ type: 'text', text: piece }];
}
