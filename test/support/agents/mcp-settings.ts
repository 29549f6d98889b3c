import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from '../documents/sources.js';

/** Returns the MCP settings of docs/sdks.md for this client, with this address. */
export async function mcpSettingsOf(client: string, url: string): Promise<string> {
  const page = await readFile(join(root, 'docs', 'sdks.md'), 'utf8');
  const section = /^## MCP$(.*?)^## /ms.exec(page)?.[1] ?? '';
  const [, snippet] = new RegExp(`^${client}\\b.*?^\`\`\`\\w+\\n(.*?)^\`\`\``, 'ms').exec(section) ?? [];
  if (snippet === undefined) throw new Error(`docs/sdks.md has no settings of MCP for ${client}`);
  return snippet.replaceAll('http://127.0.0.1:5051', url);
}
