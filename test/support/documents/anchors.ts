import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './sources.js';

/** Returns the anchors of a page's headings, as the viewers of Markdown make them. */
export function anchorsOf(page: string): Set<string> {
  const text = readFileSync(join(root, page), 'utf8').replaceAll(/^```[\s\S]*?^```/gm, '');
  const anchors = new Set<string>();
  for (const [, heading = ''] of text.matchAll(/^#+ (.*)$/gm)) {
    const words = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const anchor = words.replaceAll(/[^\p{L}\p{N}_ -]/gu, '').replaceAll(' ', '-');
    let name = anchor;
    for (let again = 1; anchors.has(name); again++) name = `${anchor}-${again}`;
    anchors.add(name);
  }
  for (const [, id = ''] of text.matchAll(/<a id="([^"]+)">/g)) anchors.add(id);
  return anchors;
}
