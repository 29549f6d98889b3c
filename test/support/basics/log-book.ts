import type { LogEvent, LogFields, Logger } from '../../../src/shared/log/logger.js';

interface Entry {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly event: LogEvent;
  readonly fields: LogFields;
}

/** Logger that stores its records for tests. */
export class LogBook implements Logger {
  readonly entries: Entry[] = [];

  get events(): LogEvent[] {
    return this.entries.map(({ event }) => event);
  }

  debug(event: LogEvent, fields: LogFields = {}): void {
    this.entries.push({ level: 'debug', event, fields });
  }

  info(event: LogEvent, fields: LogFields = {}): void {
    this.entries.push({ level: 'info', event, fields });
  }

  warn(event: LogEvent, fields: LogFields = {}): void {
    this.entries.push({ level: 'warn', event, fields });
  }

  error(event: LogEvent, fields: LogFields = {}): void {
    this.entries.push({ level: 'error', event, fields });
  }

  async flush(): Promise<boolean> {
    return true;
  }
}
