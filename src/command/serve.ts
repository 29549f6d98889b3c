import type { SetupReport } from '../shared/api/setup.js';
import { ConfigFault } from '../shared/config/config.js';
import { type Command, jsonFlag } from './command.js';
import { exitCodes } from './errors.js';
import { renderSetupReport } from './render/setup-report.js';
import type { Terminal } from './terminal.js';

/** Runs the service in this process. The service handles signals, writes the log and ends the process. */
export const serve: Command = {
  name: 'serve',
  synopsis: '',
  summary: 'run the service (default); set MODEL_API_* variables to configure it',
  flags: {},
  maxPositionals: 0,
  run: async () => {
    const { start } = await import('../primary/main.js');
    start();
    return null;
  },
};

/** Reads the configuration of the service and tests its model CLI, without starting the service. */
export const check: Command = {
  name: 'check',
  synopsis: '',
  summary: 'show the configuration of the service and test the model CLI, without starting the service',
  flags: jsonFlag,
  maxPositionals: 0,
  run: async (args, { terminal }) => {
    const { inspectSetup } = await import('../primary/main.js');
    try {
      return await show(await inspectSetup(), args.has('json'), terminal);
    } catch (error) {
      if (!(error instanceof ConfigFault)) throw error;
      if (args.has('json')) await terminal.writeJson({ faults: error.faults });
      for (const fault of error.faults) terminal.message(`${terminal.messagePaint.red('fault')}  ${fault}`);
      return exitCodes.config;
    }
  },
};

async function show(setup: SetupReport, asJson: boolean, terminal: Terminal): Promise<number> {
  if (asJson) await terminal.writeJson(setup);
  else await terminal.writeLines(renderSetupReport(setup, terminal.paint));
  return setup.model_cli.ready ? exitCodes.ok : exitCodes.unavailable;
}
