import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { browserPackages } from './browser-files.js';

const property = z.object({ name: z.string(), value: z.string() });
const component = z.looseObject({
  'bom-ref': z.string(),
  name: z.string(),
  properties: z.array(property).default([]),
});

const documentSchema = z.looseObject({
  metadata: z.looseObject({ component: z.looseObject({ 'bom-ref': z.string(), name: z.string() }) }),
  components: z.array(component),
  dependencies: z.array(z.looseObject({ ref: z.string(), dependsOn: z.array(z.string()).default([]) })),
});

export type SbomDocument = z.infer<typeof documentSchema>;

const isDevelopment = 'cdx:npm:package:development';

/**
 * Reduces npm's bill of materials to the packages installed with the service and those whose files the console has.
 * `npm sbom --omit=dev` would omit packages that development needs, too: with npm 11.19, zod, debug and ms were
 * missing.
 */
export function productionSbom(whole: SbomDocument, name: string): SbomDocument {
  const components = whole.components.flatMap((one) => {
    const properties = one.properties.filter((property) => property.name !== isDevelopment);
    if (properties.length < one.properties.length && !browserPackages.includes(one.name)) return [];
    return [{ ...one, properties }];
  });
  const { component: root } = whole.metadata;
  const kept = new Set([root['bom-ref'], ...components.map((one) => one['bom-ref'])]);
  const dependencies = whole.dependencies
    .filter(({ ref }) => kept.has(ref))
    .map((entry) => ({ ...entry, dependsOn: entry.dependsOn.filter((ref) => kept.has(ref)) }));
  // npm names the root after its folder.
  return { ...whole, metadata: { ...whole.metadata, component: { ...root, name } }, components, dependencies };
}

/** Runs npm, which reads the installed packages and needs no network. */
export async function readSbom(root: string): Promise<SbomDocument> {
  const args = ['sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'application'];
  const { stdout } = await promisify(execFile)('npm', args, { cwd: root, maxBuffer: 64 * 1024 ** 2 });
  return documentSchema.parse(JSON.parse(stdout));
}

if (require.main === module) {
  const root = join(__dirname, '..', '..');
  readSbom(root)
    .then((whole) => productionSbom(whole, 'prompt-relay'))
    .then((bill) => process.stdout.write(`${JSON.stringify(bill, null, 2)}\n`))
    .catch((error: unknown) => {
      process.stderr.write(`${String(error)}\n`);
      process.exitCode = 1;
    });
}
