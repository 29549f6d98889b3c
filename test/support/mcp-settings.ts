import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from './sources.js';

/** The settings that docs/mcp.md shows for this client, with this address. */
export async function mcpSettingsOf(client: string, url: string): Promise<string> {
  const page = await readFile(join(root, 'docs', 'mcp.md'), 'utf8');
  const [, snippet] = new RegExp(`^${client}\\b.*?^\`\`\`\\w+\\n(.*?)^\`\`\``, 'ms').exec(page) ?? [];
  if (snippet === undefined) throw new Error(`docs/mcp.md has no settings for ${client}`);
  return snippet.replaceAll('http://127.0.0.1:5051', url);
}
