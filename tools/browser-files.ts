import { copyFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, extname, join, relative } from 'node:path';
import { documentTable } from '../src/shared/tables/document-types.js';
import { codeTable, reasonTable } from '../src/shared/tables/errors.js';
import { usageFigures } from '../src/shared/tables/usage-figures.js';

/** Languages whose code the console highlights. */
const grammars = 'bash c cpp csharp css diff go java javascript json php python ruby rust sql typescript xml yaml'
  .split(' ')
  .map((name) => `@highlightjs/cdn-assets/es/languages/${name}.min.js`);

/** Modules that the console imports, with their files below node_modules. */
const modules: Readonly<Record<string, string>> = {
  'eventsource-parser': 'eventsource-parser/dist/index.js',
  htm: 'htm/dist/htm.mjs',
  'htm/preact': 'htm/preact/index.mjs',
  marked: 'marked/lib/marked.esm.js',
  preact: 'preact/dist/preact.mjs',
  'preact/hooks': 'preact/hooks/dist/hooks.mjs',
  ...Object.fromEntries(
    ['@highlightjs/cdn-assets/es/core.min.js', ...grammars, 'temml/dist/temml.min.js'].map((name) => [name, name]),
  ),
};

/** Text to append to a script that is not a module, to export its value. */
const endings: Readonly<Record<string, string>> = { 'temml/dist/temml.min.js': '\nexport default temml;\n' };

const mathFont = '@fontsource/noto-sans-math/files/noto-sans-math-latin-400-normal.woff2';

/** Packages whose files the build copies. Those that only the console needs are development dependencies. */
export const browserPackages: readonly string[] = [
  ...new Set([...Object.values(modules), mathFont].map(packageOf)),
].sort();

function packageOf(file: string): string {
  return file.split('/', file.startsWith('@') ? 2 : 1).join('/');
}

/** Tables that the console shares with the service, with the fields that it needs. It imports them from `base/tables.mjs`. */
const tables = {
  codeTable: fieldsOf(codeTable, 'mayPass', 'title'),
  documentTable: fieldsOf(documentTable, 'begin', 'name', 'offered'),
  reasonTable: fieldsOf(reasonTable, 'mayPass'),
  usageFigures: fieldsOf(usageFigures, 'group', 'field', 'unit', 'title'),
};

function fieldsOf(table: Readonly<Record<string, object>>, ...names: readonly string[]): object {
  const rows = Object.entries(table).map(([key, row]) => {
    const fields = Object.entries(row).filter(([name]) => names.includes(name));
    return [key, Object.fromEntries(fields)] as const;
  });
  return Object.fromEntries(rows);
}

/** Copies the modules, and the licences of their packages, into the folder of the built console. */
export async function copyBrowserFiles(root: string, consoleFolder: string): Promise<void> {
  const target = join(consoleFolder, 'packages');
  await rm(target, { recursive: true, force: true });
  await mkdir(target);
  for (const [name, file] of Object.entries(modules)) {
    const text = await readFile(join(root, 'node_modules', file), 'utf8');
    await writeFile(join(target, fileNameOf(name)), text + (endings[file] ?? ''));
  }
  for (const name of browserPackages) {
    await copyFile(join(root, 'node_modules', name, 'LICENSE'), join(target, `${name.replace('/', '-')}.LICENSE`));
  }
  await writeMathFont(root, join(consoleFolder, 'math.woff2'));
  await writeMathStyles(root, join(consoleFolder, 'math.css'));
  await copyFile(join(root, 'node_modules', 'temml/dist/Temml.woff2'), join(consoleFolder, 'primes.woff2'));
  await replaceImports(consoleFolder);
  const exported = Object.entries(tables).map(([name, table]) => `export const ${name} = ${JSON.stringify(table)};\n`);
  await writeFile(join(consoleFolder, 'base', 'tables.mjs'), exported.join(''));
}

/**
 * Alphabets of formulas, as first and last code point: italic, bold and bold italic with Greek, script, Fraktur,
 * double-struck, sans-serif and monospace.
 */
const alphabets = [
  ...[0x1d434, 0x1d467, 0x1d6a4, 0x1d6a5, 0x1d6e2, 0x1d71b],
  ...[0x1d400, 0x1d433, 0x1d468, 0x1d49b, 0x1d6a8, 0x1d6e1, 0x1d71c, 0x1d755, 0x1d7ce, 0x1d7d7],
  ...[0x1d49c, 0x1d4cf, 0x1d504, 0x1d537, 0x1d538, 0x1d56b, 0x1d7d8, 0x1d7e1],
  ...[0x1d5a0, 0x1d5d3, 0x1d7e2, 0x1d7eb, 0x1d670, 0x1d6a3, 0x1d7f6, 0x1d7ff],
];

/** Features of the font that formulas use: primes, script letters, and the places of accents. */
const features = ['ssty', 'ss01', 'dtls', 'kern', 'mark', 'mkmk', 'ccmp'];

interface SubsetOptions {
  readonly targetFormat: 'woff2';
  readonly keepFeatures: readonly string[];
  readonly noHinting: boolean;
}

type SubsetFont = (font: Buffer, text: string, options: SubsetOptions) => Promise<Buffer>;

/** Writes the math font with the characters of Temml's source and of the alphabets: 93 KB instead of 271 KB. */
async function writeMathFont(root: string, path: string): Promise<void> {
  const subsetFont = require('subset-font') as SubsetFont; // it has no types
  const temml = await readFile(join(root, 'node_modules', 'temml/dist/temml.min.js'), 'utf8');
  const characters = [...temml, '√']; // the browser itself draws the sign of a root
  for (let index = 0; index < alphabets.length; index += 2) {
    const [first = 0, last = 0] = alphabets.slice(index);
    for (let point = first; point <= last; point++) characters.push(String.fromCodePoint(point));
  }
  const text = [...new Set(characters)].join('');
  const options = { targetFormat: 'woff2', keepFeatures: features, noHinting: true } as const;
  const whole = await readFile(join(root, 'node_modules', mathFont));
  await writeFile(path, await subsetFont(whole, text, options));
}

/** Writes Temml's style sheet for this font, which aligns the cells of arrays. The font itself is declared by the console. */
async function writeMathStyles(root: string, path: string): Promise<void> {
  const styles = await readFile(join(root, 'node_modules', 'temml/dist/Temml-NotoSans.css'), 'utf8');
  const ownFont = styles
    .replace(/@font-face \{[^}]*\}|math \.mathscr \{[^}]*\}/g, '') // the second one names a font that nobody has
    .replaceAll('NotoSans Math', 'Noto Sans Math');
  await writeFile(path, `${ownFont}\n${primeStyles}`);
}

/**
 * Chromium scales down the primes of most math fonts twice, so that `f'` is hard to read. Temml's own font has primes of
 * the right size. Firefox needs no other font.
 */
const primeStyles = `@font-face {
  font-family: Temml;
  src: url("primes.woff2") format("woff2");
}

@supports (not (-moz-appearance: none)) {
  mo.tml-prime {
    font-family: Temml;
    font-feature-settings: normal;
  }
}
`;

function fileNameOf(module: string): string {
  return `${module.replace('.min.js', '').replaceAll('/', '-')}.mjs`;
}

/** Matches an import of a module of a package, as tsc and minifiers write it. */
const packageImport = new RegExp(
  String.raw`(\b(?:from|import)\s*\(?\s*)(['"])(${Object.keys(modules).join('|')})\2`,
  'g',
);

/**
 * Replaces the names of modules by paths, because browsers resolve names only with an import map, which would be an
 * inline script. Removes the references to source maps, which are not served.
 */
async function replaceImports(consoleFolder: string): Promise<void> {
  for (const name of await readdir(consoleFolder, { recursive: true })) {
    if (extname(name) !== '.mjs') continue;
    const path = join(consoleFolder, name);
    const packages = relative(dirname(path), join(consoleFolder, 'packages')) || '.';
    const prefix = packages.startsWith('.') ? packages : `./${packages}`;
    const text = (await readFile(path, 'utf8'))
      .replace(packageImport, (_, before: string, quote: string, module: string) => {
        return `${before}${quote}${prefix}/${fileNameOf(module)}${quote}`;
      })
      .replace(/^\/\/# sourceMappingURL=.*$/m, '');
    await writeFile(path, text);
  }
}

if (require.main === module) {
  const root = join(__dirname, '..', '..');
  copyBrowserFiles(root, join(root, 'dist', 'src', 'console')).catch((error: unknown) => {
    process.stderr.write(`${String(error)}\n`);
    process.exitCode = 1;
  });
}
