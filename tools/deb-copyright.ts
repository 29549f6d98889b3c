import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

const manifestSchema = z.object({ name: z.string(), version: z.string(), license: z.string() });
const line = '-'.repeat(78);
/** Reference to the copy of this text that Debian provides for all packages. */
const apache = 'On Debian systems, the text of the Apache License 2.0 is in /usr/share/common-licenses/Apache-2.0.';

/**
 * Returns the licences of the program, of Node if the package carries it, and of the npm packages in `folders`.
 */
export async function copyrightText(
  root: string,
  folders: readonly string[],
  nodeVersion: string,
  nodeLicence: string | null,
): Promise<string> {
  const own = await readFile(join(root, 'LICENSE'), 'utf8');
  const node = nodeLicence === null ? [] : [section(`Node.js ${nodeVersion} (bin/node)`, nodeLicence)];
  const others = await Promise.all(folders.map((folder) => sectionOf(root, folder)));
  return [section('prompt-relay', own), ...node, ...others].join('\n');
}

async function sectionOf(root: string, folder: string): Promise<string> {
  const { name, version, license } = manifestSchema.parse(
    JSON.parse(await readFile(join(root, folder, 'package.json'), 'utf8')),
  );
  const files = (await readdir(join(root, folder))).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file)).sort();
  if (files.length === 0) throw new Error(`${folder} has no text of its licence`);
  const texts = await Promise.all(files.map((file) => readFile(join(root, folder, file), 'utf8')));
  const isApache = license === 'Apache-2.0';
  return section(`${name} ${version} (${license})`, isApache ? apacheNotice(texts) : texts.join('\n'));
}

/** Returns the copyright lines, and the reference to the text of the licence. */
function apacheNotice(texts: readonly string[]): string {
  const holders = texts.flatMap((text) => text.split('\n').filter((each) => /^\s*copyright.*\d{4}/i.test(each)));
  return [...holders.map((each) => each.trim()), apache].join('\n');
}

function section(title: string, text: string): string {
  return `${line}\n${title}\n${line}\n\n${text.replaceAll('\r\n', '\n').trim()}\n`;
}
