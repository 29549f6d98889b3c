import { writeFile } from 'node:fs/promises';
import type { FileLogin } from '../../../../../src/primary/cli/contract/adapter.js';
import { sharedLoginWarnings } from '../../../../../src/primary/cli/login/shared-home.js';
import { temporaryFolder } from '../../../../support/basics/folder.js';

describe('The login of a service', () => {
  it.each([
    ['a person with a shell', 'ann:x:1000:1000::HOME:/bin/bash', 1],
    ['root', 'root:x:0:0:root:HOME:/bin/sh', 1],
    ['a user without a shell', 'relay:x:1000:1000::HOME:/usr/sbin/nologin', 0],
    ['a user of the system', 'relay:x:997:997::HOME:/bin/bash', 0],
    ['nobody', 'ann:x:1000:1000::/home/ann:/bin/bash', 0],
  ])('causes the expected warnings in the HOME of %s', async (_, line, count) => {
    await using folder = await temporaryFolder();
    const home = folder.path;
    const login = { path: `${home}/login.json` } as FileLogin;
    const warnings = () => sharedLoginWarnings([{ name: 'claude', adapter: { login } }], { HOME: home }, passwd);
    const passwd = Promise.resolve(`daemon:x:1:1::/:/usr/sbin/nologin\n${line.replace('HOME', home)}\n`);
    expect(await warnings()).toEqual([]); // no files contain a login
    await writeFile(login.path, '{}');
    expect(await warnings()).toHaveLength(count);
  });
});
