//! The probe mesh.
