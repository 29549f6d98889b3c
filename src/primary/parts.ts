import type { Config } from '../shared/config/config.js';
import type { Clients } from './access/clients.js';
import type { BackgroundJobs } from './background/background-jobs.js';
import type { BackgroundRunner } from './background/background-runner.js';
import type { KnownModels } from './cli/known-models.js';
import type { ModelCatalog } from './cli/model-catalog.js';
import type { ModelCli } from './cli/model-cli.js';
import type { AtLeastOne, NamedAdapter } from './cli/models.js';
import type { StandbyKeeper } from './cli/pool/standby-keeper.js';
import type { Redactor } from './cli/process/redactor.js';
import type { ModelRouter } from './cli/route.js';
import type { ConversationStore } from './conversations/conversation-store.js';
import type { KeptConversations } from './conversations/kept-conversations.js';
import type { SeenClients } from './health/seen-clients.js';
import type { ConversationReplica } from './hosts/conversation-replica.js';
import type { HealthAgent } from './hosts/health-agent.js';
import type { Hosts } from './hosts/hosts.js';
import type { JobPuller } from './hosts/job-puller.js';
import type { Claims } from './idempotency/claims.js';
import type { JobRunner } from './jobs/job-runner.js';
import type { WaitingRoom } from './jobs/waiting-room.js';
import type { Host } from './lifecycle/host.js';
import type { Supervisor } from './lifecycle/supervisor.js';
import type { LastHour } from './observe/last-hour.js';
import type { PrimaryMetrics } from './observe/primary-metrics.js';
import type { Scrape } from './observe/scrape.js';
import type { UsageJournal } from './observe/usage-journal.js';
import type { UsageLedger } from './observe/usage-ledger.js';
import type { Store } from './store/contract/store.js';
import type { SchemaChecker } from './threads/schema-checker.js';
import type { TokenCounter } from './threads/token-counter.js';
import type { Addresses } from './workers/addresses.js';
import type { Workers } from './workers/workers.js';

/** What the service is made from. */
export interface Setup {
  readonly config: Config;
  readonly host: Host;
  /** The model CLIs, the default first. */
  readonly named: AtLeastOne<NamedAdapter>;
  readonly addresses: Addresses;
  /** Null where no front is told how this host is. */
  readonly agent: HealthAgent | null;
  readonly store: Store;
  /** Null unless several hosts share the store. */
  readonly hosts: Hosts | null;
}

/** The parts of the primary, in the order in which they are built: each knows only those before it. */
export interface Parts extends Setup {
  readonly clients: Clients;
  readonly redactor: Redactor;
  readonly room: WaitingRoom;
  /** Those who have asked for a job. */
  readonly clientsSeen: SeenClients;
  readonly conversations: ConversationStore;
  readonly kept: KeptConversations;
  /** The conversations, where other hosts go on with them too; else null. */
  readonly shared: ConversationReplica | null;
  readonly metrics: PrimaryMetrics;
  readonly usage: UsageLedger;
  readonly usageJournal: UsageJournal;
  readonly lastHour: LastHour;
  readonly tokens: TokenCounter;
  readonly schemas: SchemaChecker;
  readonly clis: AtLeastOne<ModelCli>;
  readonly router: ModelRouter;
  readonly catalog: ModelCatalog;
  readonly knownModels: KnownModels;
  readonly runner: JobRunner;
  readonly background: BackgroundJobs;
  readonly backgroundRunner: BackgroundRunner;
  /** Null where no other host takes the jobs of this one. */
  readonly feeder: JobPuller | null;
  readonly claims: Claims;
  readonly supervisor: Supervisor;
  /** One for each CLI. */
  readonly standbyKeepers: readonly StandbyKeeper[];
  readonly scrape: Scrape;
  readonly workers: Workers;
}
