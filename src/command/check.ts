import { ConfigFault } from '../shared/config/config.js';
import type { Inspection } from '../shared/inspection.js';
import { type Command, jsonFlag } from './command.js';
import { exitCodes } from './exit-codes.js';
import { renderInspection } from './render/inspection.js';
import type { Terminal } from './terminal.js';

/** Reads the configuration and asks the model CLI, as a service started now would, and starts none. */
export const check: Command = {
  name: 'check',
  takes: '',
  summary: 'say what a service started now would use, and whether its model CLI is ready',
  flags: jsonFlag,
  maxWords: 0,
  run: async (given, { terminal }) => {
    const { inspect } = await import('../primary/main.js');
    try {
      return await tell(await inspect(), given.has('json'), terminal);
    } catch (error) {
      if (!(error instanceof ConfigFault)) throw error;
      if (given.has('json')) await terminal.json({ faults: error.faults });
      for (const fault of error.faults) terminal.say(`${terminal.talkPaint.red('fault')}  ${fault}`);
      return exitCodes.config;
    }
  },
};

async function tell(inspection: Inspection, asJson: boolean, terminal: Terminal): Promise<number> {
  if (asJson) await terminal.json(inspection);
  else for (const line of renderInspection(inspection, terminal.paint)) await terminal.line(line);
  return inspection.model_cli.ready ? exitCodes.ok : exitCodes.unavailable;
}
