import type { CreatePrimaryPart } from '../../primary/features/feature.js';
import { urlOf } from '../../primary/workers/addresses.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import { portUrlsOf, type ReportedCli, setupReportOf } from './report.js';
import type { calls } from './shared.js';

/** Creates the part that reports the set-up of the running service. */
export const createSetupReport: CreatePrimaryPart = ({ catalog, addresses, ...core }) => {
  const openUrls = new Map(addresses.ports.map(({ name, address }) => [name, urlOf(address)]));
  const portUrls = portUrlsOf(core.config.featurePorts, ({ name }) => openUrls.get(name));
  const urls = { url: urlOf(addresses.main), portUrls };
  // The report shows the command without its arguments, which may include secrets.
  const commandOf = ({ adapter }: ReportedCli) => adapter.command;
  const handlers: Handlers<typeof calls> = {
    setup: async () => {
      const found = { keys: core.clients.keyNames, commandOf, models: await catalog.list() };
      return { text: JSON.stringify(setupReportOf({ ...core, ...urls, ...found })) };
    },
  };
  return { handlers };
};
