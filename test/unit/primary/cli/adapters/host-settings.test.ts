import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { hostSettings, managedFault, managedWarnings } from '../../../../../src/primary/cli/adapters/host-settings.js';
import { temporaryFolder } from '../../../../support/basics/folder.js';

/** Creates a folder with these files. */
async function folderWith(files: Readonly<Record<string, string>>) {
  const folder = await temporaryFolder();
  await mkdir(join(folder.path, 'managed-settings.d'));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder.path, name), text);
  return folder;
}

describe('The managed settings of a host', () => {
  it('are ignored if there are none', async () => {
    await using folder = await folderWith({});
    for (const path of [folder.path, '/no/such/folder'])
      expect([await managedWarnings(path), await managedFault(path)]).toEqual([[], null]);
  });

  it('are listed by their files and keys, with their effect on a job, and without values', async () => {
    const settings = { hooks: {}, availableModels: ['haiku'], env: { A_TOKEN: 'secret', B: '2' }, permissions: {} };
    await using folder = await folderWith({
      'managed-settings.json': JSON.stringify(settings),
      'managed-settings.d/20-model.json': '{"model":"haiku"}',
      'managed-settings.d/10-empty.json': '{}',
      'managed-settings.d/.hidden.json': '{"model":"haiku"}',
      'managed-settings.d/30-blank.json': '\n',
      'managed-settings.d/README': 'text',
    });
    expect(await managedWarnings(folder.path)).toEqual([
      `${folder.path}/managed-settings.json applies to each job of claude: hooks (they see prompts and answers), ` +
        'availableModels (another model may answer), env (A_TOKEN B), permissions',
      `${folder.path}/managed-settings.d/20-model.json applies to each job of claude: model (another model may answer)`,
    ]);
    expect(await managedFault(folder.path)).toBeNull();
  });

  it('are a fault if they are not valid JSON, because claude then runs no job', async () => {
    for (const text of ['{nope', '[]', 'null']) {
      await using folder = await folderWith({ 'managed-settings.json': text });
      expect(await managedFault(folder.path)).toContain('are not valid JSON');
      expect(await managedWarnings(folder.path)).toHaveLength(1);
    }
  });

  it('are a fault if they name MCP servers, because claude then runs no job without these', async () => {
    await using folder = await folderWith({ 'managed-mcp.json': '{"mcpServers":{}}' });
    expect(await managedFault(folder.path)).toContain('managed-mcp.json');
    expect(await managedWarnings(folder.path)).toEqual([expect.stringContaining(`${folder.path}: the managed MCP`)]);
  });
});

describe('The folder of a host with settings for all users of a program', () => {
  it('is reported with its files, because they may apply to jobs', async () => {
    await using folder = await folderWith({ 'settings.json': '{}' });
    const warning = `${folder.path} may apply to each job of other: managed-settings.d, settings.json`;
    expect(await hostSettings({ name: 'other', hostFolder: folder.path })).toEqual([warning]);
  });

  it.each([{ name: 'other' }, { name: 'other', hostFolder: '/no/such/folder' }])(
    'is not reported if it is unknown or missing: %j',
    async (adapter) => {
      expect(await hostSettings(adapter)).toEqual([]);
    },
  );
});
