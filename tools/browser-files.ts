import { copyFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, extname, join, relative } from 'node:path';

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

/** Packages whose files the build copies. Those that only the console needs are development dependencies. */
export const browserPackages: readonly string[] = [...new Set(Object.values(modules).map(packageOf))].sort();

function packageOf(file: string): string {
  return file.split('/', file.startsWith('@') ? 2 : 1).join('/');
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
  await replaceImports(consoleFolder);
}

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
