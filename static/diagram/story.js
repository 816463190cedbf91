// From the steps of a race to what each attempt did: when it waited, held, read, slept and wrote. Pure.

/**
 * @typedef {{at_ms: number, kind: string, key?: string | null, token?: number | null, detail: string,
 *   until_ms?: number | null}} Step
 * @typedef {{attempt: string, replica: string, who: string, what: string, outcome?: string | null,
 *   steps: Step[]}} RaceRecord
 * @typedef {{race?: string, sentence?: string, clean?: boolean, records: RaceRecord[]}} Race
 *
 * @typedef {{at: number, kind: string, rows: string[], token: number | null, detail: string}} Event
 * @typedef {{from: number, to: number}} Span
 * @typedef {Span & {rows: string[], ended: 'granted' | 'refused' | 'open'}} Wait
 * @typedef {Span & {row: string, token: number | null, end: 'released' | 'over' | 'open'}} Lease
 * @typedef {Span & {freeze: boolean}} Pause
 * @typedef {Span & {row: string}} Section
 * @typedef {{row: string, at: number, version: string | null}} Write
 * @typedef {{index: number, id: string, name: string, who: string, what: string, replica: string,
 *   outcome: string | null, events: Event[], waits: Wait[], leases: Lease[], pauses: Pause[], work: Span[],
 *   sections: Section[], writes: Write[], committed: number | null, end: number}} Attempt
 * @typedef {Span & {row: string, attempts: [number, number]}} Overlap
 * @typedef {{row: string, kind: 'sold-twice' | 'lost-update', first: number, second: number}} Violation
 * @typedef {{began: number, length: number, lock: string | null, rows: string[], attempts: Attempt[],
 *   overlaps: Overlap[], violations: Violation[]}} Story
 */

/** The row under which a lock stands that is on no row in particular. */
export const WHOLE_FILE = 'the whole file';

const UNTIL_COMMIT = /until commit/;

/**
 * @param {Race} race
 * @returns {Story}
 */
export function tell(race) {
  const records = race.records.filter((record) => record.steps.length > 0);
  const began = Math.min(...records.flatMap((record) => record.steps.map((step) => step.at_ms)));
  const rows = rowsOf(records);
  const names = namesOf(records);
  const attempts = records.map((record, index) => attempt(record, index, names[index], began, rows));
  endLeasesAtNextGrant(attempts);
  const length = Math.max(0, ...attempts.map((one) => one.end));
  return {
    began: records.length > 0 ? began : 0,
    length,
    lock: lockOf(records),
    rows,
    attempts,
    overlaps: overlaps(attempts),
    violations: violations(attempts),
  };
}

/**
 * A lock's key names its room first, a row does not.
 * @param {string} key
 */
function rowOf(key) {
  return key.replace(/^[a-z0-9-]+\/(?=(seat|wallet)\/)/, '');
}

/** @param {RaceRecord[]} records */
function rowsOf(records) {
  /** @type {Set<string>} */
  const rows = new Set();
  for (const { steps } of records) {
    for (const { kind, key } of steps) {
      if (key && ['granted', 'read', 'wrote'].includes(kind)) {
        rows.add(rowOf(key));
      }
    }
  }
  return [...rows].sort(byTableAndName);
}

/** @param {string} a @param {string} b */
function byTableAndName(a, b) {
  return a.localeCompare(b, 'en', { numeric: true });
}

/**
 * Several keys stand in one text, `wallet/alice, wallet/bob`. A name may hold a comma, so known rows are looked for.
 * @param {string | null | undefined} key
 * @param {string[]} rows
 */
function rowsNamedBy(key, rows) {
  if (!key) {
    return [];
  }
  if (rows.includes(rowOf(key))) {
    return [rowOf(key)];
  }
  const parts = key.split(', ').map(rowOf);
  return rows.filter((row) => parts.includes(row));
}

/**
 * Who, and where two bear one name, what tells them apart.
 * @param {RaceRecord[]} records
 */
function namesOf(records) {
  return records.map(({ who, what }) => {
    const alone = records.filter((other) => other.who === who).length === 1;
    const taker = what.split(' to ').at(-1) ?? '';
    return alone || taker === what ? who : `${who} → ${taker}`;
  });
}

/** @param {RaceRecord[]} records */
function lockOf(records) {
  const asked = records.flatMap(({ steps }) => steps).find(({ kind }) => kind === 'asked');
  if (!asked) {
    return null;
  }
  const lock = /^asks (?!for )(.+)$/.exec(asked.detail);
  return lock ? lock[1] : 'row';
}

/**
 * @param {RaceRecord} record
 * @param {number} index
 * @param {string} name
 * @param {number} began
 * @param {string[]} rows
 * @returns {Attempt}
 */
function attempt(record, index, name, began, rows) {
  const events = record.steps.map((step) => ({
    at: step.at_ms - began,
    kind: step.kind,
    rows: rowsNamedBy(step.key, rows),
    token: step.token ?? null,
    detail: step.detail,
    until: step.until_ms == null ? null : step.until_ms - began,
  }));
  const end = Math.max(...events.map(({ at }) => at));
  const pauses = pausesOf(events, end);
  const committed = events.find(({ kind }) => kind === 'committed')?.at ?? null;
  return {
    index,
    id: record.attempt,
    name,
    who: record.who,
    what: record.what,
    replica: record.replica,
    outcome: record.outcome ?? null,
    events,
    waits: waitsOf(events, end),
    leases: leasesOf(events, pauses, end),
    pauses,
    work: workOf(events),
    sections: sectionsOf(events, end),
    writes: writesOf(events),
    committed,
    end,
  };
}

/** @param {Event[]} events @param {number} end @returns {Wait[]} */
function waitsOf(events, end) {
  return events
    .filter(({ kind }) => kind === 'asked')
    .map((asked) => {
      const over = ['granted', 'rejected', 'released', 'anew'];
      const next = events.find(({ at, kind }) => at >= asked.at && over.includes(kind));
      const ended = !next ? 'open' : next.kind === 'granted' ? 'granted' : 'refused';
      return { from: asked.at, to: next?.at ?? end, rows: asked.rows, ended };
    });
}

/** @param {Event[]} events @param {number} end @returns {Pause[]} */
function pausesOf(events, end) {
  return events
    .filter(({ kind }) => kind === 'paused')
    .map((paused) => ({
      from: paused.at,
      to: events.find(({ at, kind }) => at >= paused.at && kind === 'resumed')?.at ?? end,
      freeze: paused.detail.includes('renewal'),
    }));
}

/** @param {Event[]} events @returns {Span[]} */
function workOf(events) {
  return events
    .filter(({ kind }) => kind === 'thought')
    .map((thought) => {
      const worked = Number(/(\d+) ms/.exec(thought.detail)?.[1] ?? 0);
      return { from: Math.max(0, thought.at - worked), to: thought.at };
    });
}

/** @param {(Event & {until?: number | null})[]} events @param {Pause[]} pauses @param {number} end @returns {Lease[]} */
function leasesOf(events, pauses, end) {
  return events
    .filter(({ kind }) => kind === 'granted')
    .map((granted) => {
      const row = granted.rows[0] ?? WHOLE_FILE;
      const inTransaction = UNTIL_COMMIT.test(granted.detail);
      const closing = inTransaction ? ['committed', 'rejected', 'anew'] : ['released', 'lost'];
      const closed = events.find(
        ({ at, kind, rows }) => at >= granted.at && closing.includes(kind) && (inTransaction || rows.length === 0 || rows.includes(row)),
      );
      const over = inTransaction ? null : frozenUntil(granted, pauses);
      if (over !== null && over < (closed?.at ?? end)) {
        return { row, token: granted.token, from: granted.at, to: over, end: 'over' };
      }
      const how = !closed ? 'open' : closed.kind === 'lost' ? 'over' : 'released';
      return { row, token: granted.token, from: granted.at, to: closed?.at ?? end, end: how };
    });
}

/**
 * When a lease ran out whose renewal slept: it lives on from its last renewal, and that is told nowhere. Renewals come
 * at a third of the lease, so before the first third there was none.
 * @param {Event & {until?: number | null}} granted
 * @param {Pause[]} pauses
 */
function frozenUntil(granted, pauses) {
  const ttl = Number(/granted for (\d+) ms/.exec(granted.detail)?.[1] ?? Number.NaN);
  const pause = pauses.find(({ from, freeze }) => freeze && from >= granted.at);
  if (!pause || Number.isNaN(ttl)) {
    return null;
  }
  const renewals = Math.floor((pause.from - granted.at) / (ttl / 3));
  const until = (granted.until ?? granted.at + ttl) + (renewals * ttl) / 3;
  return until < pause.to ? until : null;
}

/**
 * Whoever is granted a key next tells that the lease before it was over by then.
 * @param {Attempt[]} attempts
 */
function endLeasesAtNextGrant(attempts) {
  const leases = attempts.flatMap((one) => one.leases.map((lease) => ({ lease, one })));
  for (const { lease, one } of leases) {
    if (lease.end !== 'over') {
      continue;
    }
    const next = leases.find(
      (other) => other.one !== one && other.lease.row === lease.row && other.lease.from > lease.from && other.lease.from < lease.to,
    );
    lease.to = next?.lease.from ?? lease.to;
  }
}

/** @param {Event[]} events */
function sinceLastAnew(events) {
  return events.slice(events.findLastIndex(({ kind }) => kind === 'anew') + 1);
}

/**
 * From reading a row to the end of what was decided from it: there, nobody else may be.
 * @param {Event[]} events
 * @param {number} end
 * @returns {Section[]}
 */
function sectionsOf(events, end) {
  const walk = sinceLastAnew(events);
  const left = walk.find(({ kind }) => kind === 'committed' || kind === 'rejected');
  return walk
    .filter(({ kind, rows }) => kind === 'read' && rows.length === 1)
    .map((read) => ({ row: read.rows[0], from: read.at, to: Math.max(read.at, left?.at ?? end) }));
}

/** @param {Event[]} events @returns {Write[]} */
function writesOf(events) {
  return sinceLastAnew(events)
    .filter(({ kind, rows }) => kind === 'wrote' && rows.length === 1)
    .map(({ at, rows, detail }) => ({ row: rows[0], at, version: /over version (\d+)/.exec(detail)?.[1] ?? null }));
}

/** @param {Attempt[]} attempts @returns {Overlap[]} */
function overlaps(attempts) {
  const found = [];
  for (const [index, one] of attempts.entries()) {
    for (const other of attempts.slice(index + 1)) {
      for (const a of one.sections) {
        const b = other.sections.find(({ row }) => row === a.row);
        const from = Math.max(a.from, b?.from ?? Infinity);
        const to = Math.min(a.to, b?.to ?? -Infinity);
        if (from < to) {
          found.push({ row: a.row, from, to, attempts: /** @type {[number, number]} */ ([one.index, other.index]) });
        }
      }
    }
  }
  return found;
}

/**
 * A seat that two attempts were committed to; a wallet that two committed attempts wrote over the same version of.
 * @param {Attempt[]} attempts
 * @returns {Violation[]}
 */
function violations(attempts) {
  /** @type {Map<string, {index: number, at: number, row: string}[]>} */
  const written = new Map();
  for (const { index, writes, committed } of attempts) {
    for (const { row, at, version } of committed === null ? [] : writes) {
      const what = row.startsWith('seat/') ? row : `${row} over ${version}`;
      written.set(what, [...(written.get(what) ?? []), { index, at, row }]);
    }
  }
  return [...written.values()]
    .filter((writes) => writes.length > 1)
    .map((writes) => {
      const [first, second] = writes.sort((a, b) => a.at - b.at);
      const kind = first.row.startsWith('seat/') ? 'sold-twice' : 'lost-update';
      return { row: first.row, kind, first: first.index, second: second.index };
    });
}
