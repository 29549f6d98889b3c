import { cp, mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/**
 * Files and folders of other packages that the build carries, by package, each with its licence. docs/dependencies.md
 * has the reasons. `vendored` in package.json has the same names, for tools that list the packages of an installation.
 */
export const vendoredFiles: Readonly<Record<string, readonly string[]>> = {
  '@highlightjs/cdn-assets': [
    ...['LICENSE', 'package.json', 'es/core.min.js'],
    ...['bash', 'c', 'cpp', 'csharp', 'css', 'diff', 'go', 'java', 'javascript', 'json', 'php', 'python', 'ruby'].map(
      grammar,
    ),
    ...['rust', 'sql', 'typescript', 'xml', 'yaml'].map(grammar),
  ],
  bullmq: [
    ...['LICENSE', 'package.json', 'dist/cjs/index.js', 'dist/cjs/version.js', 'dist/cjs/classes', 'dist/cjs/enums'],
    ...['dist/cjs/interfaces', 'dist/cjs/postgres', 'dist/cjs/scripts', 'dist/cjs/types', 'dist/cjs/utils'],
    'node_modules/semver',
  ],
  'cron-parser': ['LICENSE', 'package.json', 'dist'],
  'gpt-tokenizer': [
    'LICENSE',
    'package.json',
    'cjs/_virtual/_rolldown/runtime.js',
    'cjs/bpeRanks/o200k_base.js',
    'cjs/BytePairEncodingCore.js',
    'cjs/constants.js',
    'cjs/encoding/o200k_base.js',
    'cjs/encodingParams/cl100k_base.js',
    'cjs/encodingParams/constants.js',
    'cjs/encodingParams/o200k_base.js',
    'cjs/encodingParams/o200k_harmony.js',
    'cjs/encodingParams/p50k_base.js',
    'cjs/encodingParams/p50k_edit.js',
    'cjs/encodingParams/r50k_base.js',
    'cjs/functionCalling.js',
    'cjs/GptEncoding.js',
    'cjs/mapping.js',
    'cjs/modelParams.js',
    'cjs/modelsChatEnabled.gen.js',
    'cjs/modelsMap.js',
    'cjs/specialTokens.js',
    'cjs/utfUtil.js',
    'cjs/util.js',
  ],
  htm: ['LICENSE', 'package.json', 'dist/htm.js', 'dist/htm.mjs', 'preact/index.js', 'preact/index.mjs'],
  luxon: ['LICENSE.md', 'package.json', 'build/node/luxon.js'],
  marked: ['LICENSE', 'package.json', 'lib/marked.esm.js'],
  msgpackr: ['LICENSE', 'package.json', 'dist/node.cjs'],
  'node-abort-controller': ['LICENSE', 'package.json', 'index.js'],
  preact: ['LICENSE', 'package.json', 'dist/preact.mjs', 'hooks/dist/hooks.mjs'],
  'swagger-ui-dist': [
    'LICENSE',
    'NOTICE',
    'package.json',
    'absolute-path.js',
    'favicon-16x16.png',
    'favicon-32x32.png',
    'swagger-ui.css',
    'swagger-ui-bundle.js',
    'swagger-ui-bundle.js.LICENSE.txt',
    'swagger-ui-standalone-preset.js',
    'swagger-ui-standalone-preset.js.LICENSE.txt',
  ],
  'swagger-ui-express': ['LICENSE', 'package.json', 'index.js'],
  temml: ['LICENSE', 'package.json', 'dist/temml.min.js'],
  tslib: ['LICENSE.txt', 'package.json', 'tslib.js'],
};

function grammar(name: string): string {
  return `es/languages/${name}.min.js`;
}

/** Copies the files to the folder in which Node first searches for packages of the built service. */
export async function vendor(root: string, target = join(root, 'dist', 'src', 'node_modules')): Promise<void> {
  await rm(target, { recursive: true, force: true });
  for (const [name, files] of Object.entries(vendoredFiles)) {
    for (const file of files) {
      const copy = join(target, name, file);
      await mkdir(dirname(copy), { recursive: true });
      await cp(join(root, 'node_modules', name, file), copy, { recursive: true, filter: isRun });
    }
  }
}

/** Whether Node reads a file: no types and no maps. */
function isRun(path: string): boolean {
  return !/\.(d\.[cm]?ts|map|tsbuildinfo)$/.test(path);
}

if (require.main === module) {
  vendor(join(__dirname, '..', '..')).catch((error: unknown) => {
    process.stderr.write(`${String(error)}\n`);
    process.exitCode = 1;
  });
}
