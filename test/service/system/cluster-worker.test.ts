import { spawnSync } from 'node:child_process';
import { mainProgram } from '../../support/service/service.js';

describe('A service started as a worker of node:cluster, as pm2 does in cluster mode', () => {
  it('prints the required change on stderr, and exits with 78', () => {
    const starter = `
      const cluster = require('node:cluster');
      cluster.setupPrimary({ exec: ${JSON.stringify(mainProgram)}, silent: true, execArgv: [] });
      const worker = cluster.fork();
      worker.process.stderr.pipe(process.stderr);
      worker.on('exit', (code) => console.log(code));`;
    const { stdout, stderr } = spawnSync(process.execPath, ['-e', starter], { encoding: 'utf8' });
    expect(stdout).toBe('78\n');
    expect(stderr).toMatch(/^prompt-relay cannot run as a worker of node:cluster.* use "fork"/);
  });
});
