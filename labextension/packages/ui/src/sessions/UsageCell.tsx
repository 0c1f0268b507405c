import { useTranslation } from 'react-i18next';
import { number, showAmount } from '../amounts';
import { useHost } from '../host';
import { shareOf, type LiveSession } from './measured';

/** CPU, memory and GPUs of one session as small meters; a dash where nobody knows. */
export function UsageCell({ usage }: { usage: LiveSession | undefined }): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  if (!usage) {
    return <span className="bai-reason">–</span>;
  }
  const { cpu, cpu_limit: cores, memory, memory_limit: most, utilization } = usage;
  const bytes = (value: number): string => showAmount('mem', value, language);
  const rows = [
    typeof cpu === 'number' && {
      key: 'cpu',
      title: t('usage.cpu'),
      share: shareOf(cpu, cores),
      text: cores
        ? t('usage.of', { used: number(cpu, language), limit: number(cores, language) })
        : number(cpu, language)
    },
    typeof memory === 'number' && {
      key: 'memory',
      title: t('usage.memory'),
      share: shareOf(memory, most),
      text: most ? t('usage.of', { used: bytes(memory), limit: bytes(most) }) : bytes(memory)
    },
    typeof utilization === 'number' && {
      key: 'gpu',
      title: t('usage.gpu'),
      share: utilization,
      text: percent(utilization, language)
    }
  ].filter(row => row !== false);
  return (
    <span className="bai-usage">
      {rows.map(({ key, title, share, text }) => (
        <span key={key} title={`${title}: ${text}`}>
          <span className="bai-usage-name">{title}</span>
          <span
            role="meter"
            aria-label={title}
            aria-valuemin={0}
            aria-valuemax={100}
            aria-valuenow={Math.round((share ?? 0) * 100)}
            aria-valuetext={text}
            className="bai-usage-track"
          >
            <span style={{ width: `${(share ?? 0) * 100}%` }} />
          </span>
          <span className="bai-usage-text" aria-hidden>
            {share === null ? text : percent(share, language)}
          </span>
        </span>
      ))}
    </span>
  );
}

export function percent(share: number, language: string): string {
  return new Intl.NumberFormat(language, {
    style: 'percent',
    maximumFractionDigits: 0
  }).format(share);
}
