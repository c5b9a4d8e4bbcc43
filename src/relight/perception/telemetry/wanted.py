"""The series that are read, by the exporters' own names, and what cannot be told without each.

Names and units are those of NVIDIA's dcgm-exporter and of Prometheus' node_exporter.
"""

from __future__ import annotations

from relight.model.records import Record


class Wanted(Record, frozen=True, kw_only=True):
    """One series: its name, names that mean the same, and what it is needed for.

    ``tells`` goes on after "without it": what cannot be told then. ``of_gpu`` says that each
    GPU has one. ``labels`` are matchers that choose among the series of this name.
    """

    name: str
    tells: str
    others: tuple[str, ...] = ()
    of_gpu: bool = True
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Return all names, the preferred one first."""
        return (self.name, *self.others)


UTILISATION = Wanted(
    name="DCGM_FI_DEV_GPU_UTIL",
    others=("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_SM_ACTIVE"),
    tells="idle GPUs cannot be told from busy ones",
)
TENSOR = Wanted(
    name="DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    tells="GPUs that work cannot well be told from GPUs that only wait for others",
)
DRAM = Wanted(
    name="DCGM_FI_PROF_DRAM_ACTIVE",
    tells="work without tensor cores is told by power alone",
)
POWER = Wanted(
    name="DCGM_FI_DEV_POWER_USAGE",
    tells="neither waiting GPUs nor those that draw less than their peers are told by power",
)
TRAFFIC = tuple(
    Wanted(name=name, tells="traffic that goes on during a silence is not seen")
    for name in (
        "DCGM_FI_PROF_PCIE_TX_BYTES",
        "DCGM_FI_PROF_PCIE_RX_BYTES",
        "DCGM_FI_PROF_NVLINK_TX_BYTES",
        "DCGM_FI_PROF_NVLINK_RX_BYTES",
    )
)
LAST_XID = Wanted(
    name="DCGM_FI_DEV_XID_ERRORS", tells="faults that the driver reports (Xid) are not seen"
)
XIDS_COUNTED = Wanted(
    name="DCGM_EXP_XID_ERRORS_TOTAL",
    others=("DCGM_EXP_XID_ERRORS_COUNT",),
    tells="an Xid that repeats, or that another one follows at once, is missed",
)
REMAP_FAILURE = Wanted(
    name="DCGM_FI_DEV_ROW_REMAP_FAILURE",
    tells="GPU memory that can no longer be mended is not seen",
)
UNCORRECTABLE = (
    Wanted(
        name="DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
        others=("DCGM_FI_DEV_ECC_DBE_AGG_TOTAL",),
        tells="memory errors that ECC could not correct are not seen",
    ),
    Wanted(
        name="DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
        tells="memory rows remapped after uncorrectable errors are not seen",
    ),
)
NVLINK_RECOVERIES = Wanted(
    name="DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
    tells="NVLinks that were lost and trained again are not seen",
)
NVLINK_ERRORS = tuple(
    Wanted(name=name, tells="transmission errors of NVLinks are not seen")
    for name in (
        "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
        "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
        "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
    )
)
PCIE_REPLAYS = Wanted(
    name="DCGM_FI_DEV_PCIE_REPLAY_COUNTER", tells="a bad PCIe connection is not seen"
)
ENERGY = Wanted(
    name="DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", tells="a reload of the GPU driver is not seen"
)
SM_CLOCK = Wanted(name="DCGM_FI_DEV_SM_CLOCK", tells="a GPU that runs slower is not seen")
THROTTLE_REASONS = Wanted(
    name="DCGM_FI_DEV_CLOCK_THROTTLE_REASONS",
    others=("DCGM_FI_DEV_CLOCKS_EVENT_REASONS",),
    tells="why a GPU's clock is low is not known",
)
VIOLATIONS = tuple(
    Wanted(name=name, tells="the time that GPUs were throttled is not known")
    for name in (
        "DCGM_FI_DEV_THERMAL_VIOLATION",
        "DCGM_FI_DEV_RELIABILITY_VIOLATION",
        "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION",
    )
)
TEMPERATURE = Wanted(name="DCGM_FI_DEV_GPU_TEMP", tells="a hot GPU is not seen")
PCIE_LINK = tuple(
    Wanted(name=name, tells="a PCIe connection that runs narrower or slower is not seen")
    for name in ("DCGM_FI_DEV_PCIE_LINK_WIDTH", "DCGM_FI_DEV_PCIE_LINK_GEN")
)
BOOT_TIME = Wanted(
    name="node_boot_time_seconds", tells="a reboot of a node is not seen here", of_gpu=False
)
OOM_KILLS = Wanted(
    name="node_vmstat_oom_kill",
    tells="processes that the kernel killed for want of memory are not seen here",
    of_gpu=False,
)
LINK_DOWNED = Wanted(
    name="node_infiniband_link_downed_total",
    tells="InfiniBand links that went down are not seen",
    of_gpu=False,
)
PORT_STATE = Wanted(
    name="node_infiniband_state_id",
    others=("node_infiniband_port_state_id",),
    tells="InfiniBand ports that are not active are not seen",
    of_gpu=False,
)
LINK_ERRORS = (
    Wanted(
        name="node_infiniband_symbol_error_total",
        tells="InfiniBand links with bit errors are not seen",
        of_gpu=False,
    ),
    Wanted(
        name="node_infiniband_port_errors_received_total",
        others=("node_infiniband_port_rcv_errors_total",),
        tells="InfiniBand ports that receive broken packets are not seen",
        of_gpu=False,
    ),
)
NFS_RETRANSMISSIONS = Wanted(
    name="node_nfs_rpc_retransmissions_total",
    tells="an NFS server that does not answer is not seen here",
    of_gpu=False,
)
IO_WAIT = Wanted(
    name="node_cpu_seconds_total",
    labels=(("mode", "iowait"),),
    tells="nodes that wait for storage are not seen",
    of_gpu=False,
)

WANTED: tuple[Wanted, ...] = (
    UTILISATION,
    TENSOR,
    DRAM,
    POWER,
    *TRAFFIC,
    LAST_XID,
    XIDS_COUNTED,
    REMAP_FAILURE,
    *UNCORRECTABLE,
    NVLINK_RECOVERIES,
    *NVLINK_ERRORS,
    PCIE_REPLAYS,
    ENERGY,
    SM_CLOCK,
    THROTTLE_REASONS,
    *VIOLATIONS,
    TEMPERATURE,
    *PCIE_LINK,
    BOOT_TIME,
    OOM_KILLS,
    LINK_DOWNED,
    PORT_STATE,
    *LINK_ERRORS,
    NFS_RETRANSMISSIONS,
    IO_WAIT,
)
"""Every series that is read, the weightier ones of each sort first."""
