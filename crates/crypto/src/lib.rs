//! Sign, seal and derive keys for SMB: functions over slices.
