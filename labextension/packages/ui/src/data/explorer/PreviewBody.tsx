import { useQuery } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { number } from '../../amounts';
import { useHost } from '../../host';
import { Skeleton } from '../../kit/States';
import { LoadError } from '../../LoadError';
import { beginningQuery } from '../queries';
import type { FileEntry } from '../types';
import { contentAddress } from './addresses';
import { kindOf, readText } from './kinds';
import { NotebookPreview } from './NotebookPreview';
import { readNotebook } from './notebooks';
import { Scrolled } from './Scrolled';
import { holdsNumbers, readRows, separatorOf } from './tables';

const KIB = 1024;
/** Of text, this much is read. */
const MOST_TEXT = 256 * KIB;
const MOST_NOTEBOOK = 8 * KIB * KIB;
const MOST_PICTURE = 32 * KIB * KIB;
const MOST_ROWS = 200;

interface Props {
  folderId: string;
  path: string;
  entry: FileEntry;
}

export function PreviewBody({ folderId, path, entry }: Props): JSX.Element {
  const { t } = useTranslation();
  const { name, kind, size } = entry;
  if (kind === 'link') {
    return <Nothing>{t('files.link', { target: entry.target })}</Nothing>;
  }
  if (kind !== 'file') {
    return <Nothing>{t('files.noPreview')}</Nothing>;
  }
  const shown = kindOf(name);
  if (shown === 'image' && size <= MOST_PICTURE) {
    return <Picture {...{ folderId, path, entry }} />;
  }
  if (shown === 'archive' || shown === 'image') {
    return <Nothing>{t('files.noPreview')}</Nothing>;
  }
  if (shown === 'notebook') {
    return size <= MOST_NOTEBOOK ? (
      <Written most={MOST_NOTEBOOK} {...{ folderId, path, entry }} />
    ) : (
      <Nothing>{t('files.tooLarge')}</Nothing>
    );
  }
  return <Written most={MOST_TEXT} {...{ folderId, path, entry }} />;
}

function Nothing({ children }: { children: ReactNode }): JSX.Element {
  return <p className="bai-nothing">{children}</p>;
}

function Picture({ folderId, path, entry }: Props): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const [failed, setFailed] = useState(false);
  if (failed) {
    return <Nothing>{t('files.noPicture')}</Nothing>;
  }
  return (
    <div className="bai-picture">
      <img
        // Another content is another address: nothing old is shown.
        src={`${contentAddress(host, folderId, path)}#${entry.tag}`}
        alt={entry.name}
        onError={() => setFailed(true)}
      />
    </div>
  );
}

function Written({ folderId, path, entry, most }: Props & { most: number }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const { data, error, refetch } = useQuery(beginningQuery(host, folderId, path, entry, most));
  if (!data) {
    return error ? (
      <LoadError error={error} onRetry={() => void refetch()} />
    ) : (
      <Skeleton rows={4} label={t('state.loading')} />
    );
  }
  const isWhole = data.length >= entry.size;
  const text = readText(data, isWhole);
  if (text === null) {
    return <Nothing>{t('files.binary')}</Nothing>;
  }
  if (text === '') {
    return <Nothing>{t('files.emptyFile')}</Nothing>;
  }
  return (
    <>
      <AsKind name={entry.name} text={text} />
      {isWhole ? null : (
        <p className="bai-help">
          {t('files.beginning', { size: `${number(most / KIB, host.language)} KiB` })}
        </p>
      )}
    </>
  );
}

function AsKind({ name, text }: { name: string; text: string }): JSX.Element {
  const kind = kindOf(name);
  const cells = kind === 'notebook' ? readNotebook(text) : null;
  if (cells) {
    return <NotebookPreview cells={cells} />;
  }
  if (kind === 'table') {
    return <Rows rows={readRows(text, separatorOf(name, text), MOST_ROWS)} />;
  }
  return (
    <Scrolled>
      <pre className="bai-text">{text}</pre>
    </Scrolled>
  );
}

function Rows({ rows }: { rows: string[][] }): JSX.Element {
  const { t } = useTranslation();
  const [head = [], ...rest] = rows;
  const aligned = head.map((_, at) => (holdsNumbers(rest, at) ? 'end' : undefined));
  return (
    <Scrolled>
      <table className="bai-values">
        <thead>
          <tr>
            {head.map((cell, at) => (
              <th key={at} scope="col" data-align={aligned[at]}>
                {cell}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rest.map((row, index) => (
            <tr key={index}>
              {head.map((_, at) => (
                <td key={at} data-align={aligned[at]}>
                  {row[at] ?? ''}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length >= MOST_ROWS ? (
        <p className="bai-help">{t('files.firstRows', { count: MOST_ROWS })}</p>
      ) : null}
    </Scrolled>
  );
}
