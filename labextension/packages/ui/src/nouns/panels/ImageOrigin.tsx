/** Where an image comes from, and what it says of itself. */
import { useTranslation } from 'react-i18next';
import { showAmount } from '../../amounts';
import { useHost } from '../../host';
import { RelativeTime } from '../../kit/RelativeTime';
import type { Shown } from '../noun';
import { Amounts, Reference } from '../Value';
import { valueWord } from '../words';

export function ImageSize({ row }: { row: Shown<'images'> }): JSX.Element {
  const { language } = useHost();
  return <>{row.size_bytes ? showAmount('mem', row.size_bytes, language) : '–'}</>;
}

export function ImageOrigin({ row }: { row: Shown<'images'> }): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  const facts: [string, React.ReactNode][] = [
    ['name', <code key="name">{row.name}</code>],
    ['registry', <Reference key="registry" noun="registries" name={row.registry} />],
    ['repository', row.repository],
    ['tag', row.tag],
    ['architecture', row.architecture],
    ['type', valueWord(t, 'type', row.type ?? '')],
    ['runtime', row.runtime],
    ['accelerators', row.accelerators?.join(', ')],
    ['size_bytes', <ImageSize key="size" row={row} />],
    ['digest', row.digest ? <code key="digest">{row.digest}</code> : ''],
    ['owner', row.owner],
    [
      'last_used_at',
      row.last_used_at ? (
        <RelativeTime key="used" iso={row.last_used_at} language={language} />
      ) : (
        ''
      )
    ]
  ];
  const asks = Object.keys(row.label_minimum ?? {}).length > 0;
  const labels = Object.entries(row.labels ?? {});
  return (
    <>
      <dl className="bai-facts">
        {facts
          .filter(([, value]) => Boolean(value))
          .map(([key, value]) => (
            <div key={key}>
              <dt>{t([`fields.images.${key}`, `fields.any.${key}`], { defaultValue: key })}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        {asks ? (
          <div>
            <dt>{t('fields.images.label_minimum')}</dt>
            <dd>
              <Amounts amounts={row.label_minimum ?? {}} />
            </dd>
          </div>
        ) : null}
      </dl>
      {labels.length ? (
        <details className="bai-more">
          <summary>{t('images.labels', { count: labels.length })}</summary>
          <dl className="bai-facts bai-facts-compact">
            {labels.map(([name, value]) => (
              <div key={name}>
                <dt>
                  <code>{name}</code>
                </dt>
                <dd>{value}</dd>
              </div>
            ))}
          </dl>
        </details>
      ) : null}
    </>
  );
}
