import type { ToolResult } from '../../contract/adapter.js';
import { piecesOf } from './transcript.js';

/** Parts of the Model Context Protocol with which a program calls the client's tools. */

/** Name of the relay's MCP server. Programs prefix it to the names of its tools, and use it in permission rules. */
export const serverName = 'relay';

/** Returns the answer to `initialize`. */
export function serverInfo(protocolVersion: string): object {
  return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: serverName, version: '1' } };
}

/** Returns the answer to `tools/call`. */
export function callResult(result: ToolResult): object {
  return { content: piecesOf(result).flatMap(contentOf), isError: result.isError };
}

function contentOf(piece: ReturnType<typeof piecesOf>[number]): object[] {
  if (typeof piece !== 'string') return [{ type: 'image', data: piece.data, mimeType: piece.mediaType }];
  return piece === '' ? [] : [{ type: 'text', text: piece }];
}
