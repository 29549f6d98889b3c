import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const manifest = z.object({ version: z.string(), commit: z.string().optional() });

/**
 * Reads the version from package.json, and the commit if the package was built with it. Blocks, so it is for the start.
 */
export function readProduct(): { readonly version: string; readonly commit: string | null } {
  const { version, commit } = manifest.parse(
    JSON.parse(readFileSync(join(__dirname, '..', '..', '..', '..', 'package.json'), 'utf8')),
  );
  return { version, commit: commit ?? null };
}
